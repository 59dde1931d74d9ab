-- Lines: appends, new trails, reading, and what changed.

-- Takes back the packs that lines rely on, and returns those that were removed. Rows are locked by name, so that
-- two appends never wait for each other in a circle.
create function rely_on(p_packs bytea[]) returns bytea[]
language plpgsql as $$
declare
    gone bytea[];
begin
    if cardinality(p_packs) = 0 then
        return '{}';
    end if;
    perform from pack where hash = any (p_packs) order by hash for update;
    select coalesce(array_agg(wanted), '{}') into gone from unnest(p_packs) wanted
    where not exists (select from pack p where p.hash = wanted);
    if gone = '{}' then
        update pack set uses = uses + 1, condemned_at = null where hash = any (p_packs);
    end if;
    return gone;
end
$$;

-- The number of this transaction's change.
create function change_number() returns bigint
language sql volatile as $$ select change_base + pg_current_xact_id()::text::bigint from about $$;

-- Whether all of these lines are there, with these sums.
create function are_there(p_log bigint, p_trail bigint, p_seqs bigint[], p_sums bigint[]) returns boolean
language plpgsql as $$
begin
    return cardinality(p_seqs) > 0 and (
        select count(*) from unnest(p_seqs, p_sums) as n (seq, sum)
        join record r on r.log = p_log and r.trail = p_trail and r.seq = n.seq and r.sum = n.sum
    ) = cardinality(p_seqs);
end
$$;

-- Whether there are lines, and each has a higher number than the one before.
create function rises(p_after bigint, p_seqs bigint[]) returns boolean
language sql immutable as $$
    select coalesce(bool_and(seq > before), false)
    from (select seq, lag(seq, 1, p_after) over (order by at) from unnest(p_seqs) with ordinality as n (seq, at)) as pairs (seq, before)
$$;

create function append_1(
    p_owner int, p_id text, p_fence bigint, p_trail bigint, p_seq bigint, p_sum bigint,
    p_seqs bigint[], p_sums bigint[], p_lines bytea[], p_relies_on bytea[], p_ttl_ms bigint,
    out answer text, out trail bigint, out seq bigint, out sum bigint, out fence bigint, out holder text, out left_ms bigint,
    out purged_ms bigint, out packs bytea[]
)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    l log;
    many int := cardinality(p_seqs);
    this bigint;
    at timestamptz := clock_timestamp();
begin
    -- As in `durable` and `locked`; calling them costs more than a line should.
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    select * into l from log where owner = p_owner and id = p_id for update;
    answer := case
        when l.purged_at is not null then 'purged'
        when l.no is null or l.fence = 0 then 'absent'
        -- Behind the end are no lines that could be there already.
        when (l.trail <> p_trail or l.seq <> p_seq or l.sum <> p_sum or l.trail is null) and are_there(l.no, p_trail, p_seqs, p_sums) then 'there'
        when l.fence <> p_fence then 'fenced'
        when l.trail is null or l.trail <> p_trail or l.seq <> p_seq or l.sum <> p_sum then 'moved'
        when many = 1 and p_seqs[1] > p_seq or rises(p_seq, p_seqs) then 'new'
        else 'refused' end;
    if answer = 'new' and cardinality(p_relies_on) > 0 then
        packs := rely_on(p_relies_on);
        if packs <> '{}' then
            answer := 'gone';
        end if;
    end if;
    if answer = 'new' then
        this := pg_current_xact_id()::text::bigint + (select change_base from about);
        if many = 1 then
            insert into record (log, trail, seq, sum, change, line) values (l.no, p_trail, p_seqs[1], p_sums[1], this, p_lines[1]);
            l.bytes := l.bytes + octet_length(p_lines[1]);
        else
            insert into record (log, trail, seq, sum, change, line)
            select l.no, p_trail, n.seq, n.sum, this, n.line from unnest(p_seqs, p_sums, p_lines) as n (seq, sum, line);
            l.bytes := l.bytes + (select sum(octet_length(line)) from unnest(p_lines) as n (line));
        end if;
        at := clock_timestamp();
        update log set seq = p_seqs[many], sum = p_sums[many], changed_at = at, bytes = l.bytes,
            lease_until = greatest(l.lease_until, at + p_ttl_ms * interval '1 millisecond')
        where no = l.no;
        insert into change values (this, l.no, p_trail, p_seqs[many], p_sums[many], at, l.holder);
        answer := 'there';
    end if;
    if answer = 'there' then
        answer := 'appended'; trail := p_trail; seq := p_seqs[many]; sum := p_sums[many];
    else
        trail := l.trail; seq := l.seq; sum := l.sum; fence := l.fence; holder := l.holder;
        left_ms := left_ms(l); purged_ms := to_ms(l.purged_at);
    end if;
end
$$;

-- Without a head, the log has to be without a trail.
create function begin_1(
    p_owner int, p_id text, p_fence bigint, p_head_trail bigint, p_head_seq bigint, p_head_sum bigint,
    p_trail bigint, p_seq bigint, p_sum bigint, p_opener bytea, p_relies_on bytea[], p_ttl_ms bigint
)
returns table (
    answer text, trail bigint, seq bigint, sum bigint, fence bigint, holder text, left_ms bigint, purged_ms bigint, packs bytea[]
)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    l log := locked(p_owner, p_id);
    says text := 'appended';
    gone bytea[] := '{}';
    this bigint;
begin
    perform durable();
    if l.no is null then
        says := 'absent';
    elsif l.purged_at is not null then
        says := 'purged';
    elsif exists (select from trail where log = l.no and no = p_trail and opener_seq = p_seq and opener_sum = p_sum) then
        return query select 'appended', p_trail, p_seq, p_sum, l.fence, l.holder, left_ms(l), null::bigint, gone;
        return;
    elsif l.fence <> p_fence then
        says := 'fenced';
    elsif (l.trail, l.seq, l.sum) is distinct from (p_head_trail, p_head_seq, p_head_sum) then
        says := 'moved';
    elsif p_trail <= l.trail then
        says := 'refused';
    else
        gone := rely_on(p_relies_on);
        says := case when gone = '{}' then 'appended' else 'gone' end;
    end if;
    if says = 'appended' then
        this := change_number();
        update trail set end_seq = l.seq, end_sum = l.sum where log = l.no and no = l.trail;
        insert into trail values (l.no, p_trail, p_seq, p_sum, p_opener, p_seq, p_sum, this);
        update log set trail = p_trail, seq = p_seq, sum = p_sum, changed_at = clock_timestamp(),
            bytes = l.bytes + octet_length(p_opener),
            lease_until = greatest(l.lease_until, clock_timestamp() + ttl(p_ttl_ms))
        where no = l.no returning * into l;
        insert into change values (this, l.no, l.trail, l.seq, l.sum, l.changed_at, l.holder);
    end if;
    return query select says, l.trail, l.seq, l.sum, l.fence, l.holder, left_ms(l), to_ms(l.purged_at), gone;
end
$$;

-- The first row says whether there is such a log, and has no trail.
create function trails_1(p_owner int, p_id text)
returns table (
    answer text, trail bigint, opener_seq bigint, opener_sum bigint, opener bytea, end_seq bigint, end_sum bigint, purged_ms bigint
)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    with l as (select * from log where owner = p_owner and id = p_id and (fence > 0 or purged_at is not null))
    select case when purged_at is null then 'trails' else 'purged' end, null, null, null, null, null, null, to_ms(purged_at) from l
    union all
    (select 'trail', t.no, t.opener_seq, t.opener_sum, t.opener,
        case when t.no = l.trail then l.seq else t.end_seq end,
        case when t.no = l.trail then l.sum else t.end_sum end, null
    from l join trail t on t.log = l.no order by t.no)
$$;

-- The first row says whether there is such a trail; a row `more`, which is the last, that there are more lines.
create function read_1(p_owner int, p_id text, p_trail bigint, p_beyond bigint, p_backwards boolean, p_max_bytes bigint)
returns table (answer text, seq bigint, sum bigint, line bytea, purged_ms bigint)
language plpgsql stable security definer set search_path = @schema@, pg_temp as $$
#variable_conflict use_column
declare
    l log;
    t trail;
    r record;
    total bigint;
begin
    select * into l from log where owner = p_owner and id = p_id;
    select * into t from trail where log = l.no and no = p_trail;
    answer := case when l.purged_at is not null then 'purged' when t.no is null then 'absent' else 'lines' end;
    purged_ms := to_ms(l.purged_at);
    return next;
    if answer <> 'lines' then
        return;
    end if;
    answer := 'line';
    if not p_backwards and p_beyond is null then
        seq := t.opener_seq; sum := t.opener_sum; line := t.opener;
        total := octet_length(line);
        return next;
    end if;
    for r in execute format(
        'select seq, sum, line from record where log = $1 and trail = $2 and ($3 is null or seq %s $3) order by seq %s',
        case when p_backwards then '<' else '>' end, case when p_backwards then 'desc' else 'asc' end
    ) using l.no, p_trail, p_beyond loop
        if total is not null and total + octet_length(r.line) > p_max_bytes then
            answer := 'more'; line := null;
            return next;
            return;
        end if;
        seq := r.seq; sum := r.sum; line := r.line;
        total := coalesce(total, 0) + octet_length(line);
        return next;
    end loop;
    if p_backwards and (p_beyond is null or t.opener_seq < p_beyond) then
        if total is not null and total + octet_length(t.opener) > p_max_bytes then
            answer := 'more'; line := null;
        else
            seq := t.opener_seq; sum := t.opener_sum; line := t.opener;
        end if;
        return next;
    end if;
end
$$;

-- A change's number is its transaction's. All transactions below the oldest one that still runs have ended, so
-- what is returned is complete: no change with a lower number appears later. If changes are there that are not
-- below it, this waits a little for the older ones.
create function changes_1(p_after bigint, p_limit bigint)
returns table (id bigint, owner int, log_id text, trail bigint, seq bigint, sum bigint, at_ms bigint, holder text)
language plpgsql volatile security definer set search_path = @schema@, pg_temp as $$
#variable_conflict use_column
declare
    base bigint := (select change_base from about);
    newest bigint := (select max(id) from change);
    complete bigint;
begin
    for attempt in 1..80 loop
        complete := base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
        exit when newest is null or newest < complete;
        perform pg_sleep(case when attempt < 40 then 0.005 else 0.05 end);
    end loop;
    return query select c.id, l.owner::int, l.id, c.trail, c.seq, c.sum, to_ms(c.at), c.holder
    from change c join log l on l.no = c.log
    where c.id > p_after and c.id < complete order by c.id limit p_limit;
end
$$;

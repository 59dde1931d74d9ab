-- Leases, and the state of a log. Every function locks the row of its log, and nothing else before it.

create function to_ms(at timestamptz) returns bigint
language sql immutable as $$ select floor(extract(epoch from at) * 1000)::bigint $$;

-- For how long the lease lasts; null if there is none.
create function left_ms(l log) returns bigint
language sql volatile as $$
    select case when l.lease_until > clock_timestamp()
        then ceil(extract(epoch from l.lease_until - clock_timestamp()) * 1000)::bigint end
$$;

create function ttl(ms bigint) returns interval
language sql immutable as $$ select ms * interval '1 millisecond' $$;

-- What clients are told of a log. The clock is this server's.
create function status_of(l log)
returns table (
    trail bigint, seq bigint, sum bigint, fence bigint, holder text, left_ms bigint, changed_ms bigint,
    bytes bigint, deleted_ms bigint, purged_ms bigint, wrapped_key bytea
)
language sql stable as $$
    select l.trail, l.seq, l.sum, l.fence, l.holder, left_ms(l), to_ms(l.changed_at),
        l.bytes, to_ms(l.deleted_at), to_ms(l.purged_at), l.wrapped_key
$$;

-- What was acknowledged survives a crash, also where somebody switched that off for the database.
create function durable() returns void
language plpgsql as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

-- Locks a log. Null if it is absent.
create function locked(p_owner int, p_id text) returns log
language plpgsql as $$
declare
    l log;
begin
    select * into l from log where owner = p_owner and id = p_id for update;
    return case when l.fence > 0 or l.purged_at is not null then l end;
end
$$;

create function status_1(p_owner int, p_id text)
returns table (
    answer text, trail bigint, seq bigint, sum bigint, fence bigint, holder text, left_ms bigint, changed_ms bigint,
    bytes bigint, deleted_ms bigint, purged_ms bigint, wrapped_key bytea
)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select case when l.purged_at is not null then 'purged' when l.fence = 0 then 'absent' else 'log' end, s.*
    from log l, status_of(l) s where l.owner = p_owner and l.id = p_id
$$;

create function list_1(p_owner int, p_id text, p_limit bigint)
returns table (
    owner int, id text, trail bigint, seq bigint, sum bigint, fence bigint, holder text, left_ms bigint, changed_ms bigint,
    bytes bigint, deleted_ms bigint, purged_ms bigint, wrapped_key bytea
)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select l.owner::int, l.id, s.* from log l, status_of(l) s
    where l.purged_at is null and l.fence > 0 and (p_owner is null or (l.owner, l.id) > (p_owner::smallint, p_id collate "C"))
    order by l.owner, l.id limit p_limit
$$;

create function lease_1(p_owner int, p_id text, p_holder text, p_ttl_ms bigint, p_wrapped_key bytea)
returns table (
    answer text, trail bigint, seq bigint, sum bigint, fence bigint, holder text, left_ms bigint, changed_ms bigint,
    bytes bigint, deleted_ms bigint, purged_ms bigint, wrapped_key bytea
)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    l log;
    says text := 'leased';
begin
    perform durable();
    insert into log (owner, id) values (p_owner, p_id) on conflict do nothing;
    select * into strict l from log where owner = p_owner and id = p_id for update;
    if l.purged_at is not null then
        says := 'purged';
    elsif l.lease_until > clock_timestamp() and l.holder <> p_holder then
        says := 'held';
    else
        if l.fence = 0 then
            update log set wrapped_key = p_wrapped_key, changed_at = clock_timestamp() where no = l.no;
        end if;
        update log set fence = l.fence + 1, holder = p_holder, lease_until = clock_timestamp() + ttl(p_ttl_ms)
        where no = l.no returning * into l;
    end if;
    return query select says, s.* from status_of(l) s;
end
$$;

-- Prolongs a lease, or ends it with a time of 0.
create function renew_1(p_owner int, p_id text, p_fence bigint, p_ttl_ms bigint)
returns table (answer text, fence bigint, holder text, left_ms bigint, purged_ms bigint)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    l log := locked(p_owner, p_id);
    says text := 'renewed';
begin
    if l.no is null then
        says := 'absent';
    elsif l.purged_at is not null then
        says := 'purged';
    elsif l.fence <> p_fence then
        says := 'fenced';
    else
        update log set lease_until = clock_timestamp() + ttl(p_ttl_ms) where no = l.no returning * into l;
    end if;
    return query select says, l.fence, l.holder, left_ms(l), to_ms(l.purged_at);
end
$$;

create function delete_1(p_owner int, p_id text, p_deleted boolean)
returns table (answer text, purged_ms bigint)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    l log := locked(p_owner, p_id);
    says text := 'done';
begin
    if l.no is null then
        says := 'absent';
    elsif l.purged_at is not null then
        says := 'purged';
    elsif p_deleted <> (l.deleted_at is not null) then
        update log set deleted_at = case when p_deleted then clock_timestamp() end where no = l.no;
    end if;
    return query select says, to_ms(l.purged_at);
end
$$;

-- Removes everything of a log but its id. `p_below` is where its payloads are in the bucket.
create function purge_1(p_owner int, p_id text, p_below text)
returns table (doomed text)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    l log;
    uploading boolean;
begin
    perform durable();
    insert into log (owner, id) values (p_owner, p_id) on conflict do nothing;
    select * into strict l from log where owner = p_owner and id = p_id for update;
    if l.purged_at is null then
        delete from change where id in (select change from record where log = l.no union select change from trail where log = l.no);
        delete from record where log = l.no;
        delete from trail where log = l.no;
        if exists (select from blob where log = l.no and data is null) then
            uploading := exists (select from blob where log = l.no and sum is null);
            insert into doomed values (p_below, clock_timestamp() + case when uploading then interval '1 day' else interval '0' end)
            on conflict (name) do nothing;
        end if;
        delete from blob where log = l.no;
        update log set trail = null, seq = null, sum = null, holder = null, lease_until = null, bytes = 0,
            fence = l.fence + 1, deleted_at = null, wrapped_key = '', purged_at = clock_timestamp()
        where no = l.no;
    end if;
    return query select name from doomed where name = p_below;
end
$$;

-- Packs: what is in them, which are used, and which are removed. Rows of packs are locked by name.

create function seal_1(p_pack bytea, p_ids bytea[], p_firsts bigint[], p_bytes bigint[])
returns table (answer text)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    size bigint;
    this bigint;
begin
    perform durable();
    perform from pack where hash = p_pack for update;
    if not found then
        return query select 'gone';
        return;
    end if;
    select bytes into strict size from blob where log = 0 and hash = p_pack;
    if exists (select from unnest(p_firsts, p_bytes) as o (first, bytes) where first < 0 or bytes < 0 or first > size - bytes) then
        return query select 'refused';
        return;
    end if;
    this := nextval('seal');
    insert into object (id, pack, first, bytes, seal)
    select distinct on (id) id, p_pack, first, bytes, this from unnest(p_ids, p_firsts, p_bytes) as o (id, first, bytes)
    order by id
    on conflict (id, pack) do update set first = excluded.first, bytes = excluded.bytes, seal = excluded.seal;
    update pack set uses = uses + 1 where hash = p_pack;
    return query select 'done';
end
$$;

create function locate_1(p_ids bytea[])
returns table (id bytea, pack bytea, first bigint, bytes bigint)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select wanted.id, place.pack, place.first, place.bytes
    from unnest(p_ids) with ordinality as wanted (id, at)
    cross join lateral (
        select o.pack, o.first, o.bytes from object o join pack p on p.hash = o.pack
        where o.id = wanted.id order by p.condemned_at is not null, o.seal desc limit 1
    ) place
    order by wanted.at
$$;

-- What clients are told of a pack.
create function status_of(p pack)
returns table (pack bytea, bytes bigint, objects bigint, uses bigint, condemned_ms bigint)
language sql stable as $$
    select p.hash, (select b.bytes from blob b where b.log = 0 and b.hash = p.hash),
        (select count(*) from object o where o.pack = p.hash
            and not exists (select from object newer where newer.id = o.id and newer.seal > o.seal)),
        p.uses, floor(extract(epoch from clock_timestamp() - p.condemned_at) * 1000)::bigint
$$;

create function packs_1(p_after bytea, p_limit bigint)
returns table (pack bytea, bytes bigint, objects bigint, uses bigint, condemned_ms bigint)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select s.* from (select p from pack p where p_after is null or p.hash > p_after order by p.hash limit p_limit) as page (p),
        status_of(page.p) s
    order by s.pack
$$;

create function condemn_1(p_packs bytea[], p_uses bigint[])
returns table (pack bytea, bytes bigint, objects bigint, uses bigint, condemned_ms bigint)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
begin
    perform from pack where hash = any (p_packs) order by hash for update;
    return query with condemned as (
        update pack p set condemned_at = coalesce(p.condemned_at, clock_timestamp())
        from unnest(p_packs, p_uses) as c (hash, uses) where p.hash = c.hash and p.uses = c.uses
        returning p
    )
    select s.* from condemned, status_of(condemned.p) s order by s.pack;
end
$$;

-- Removes packs from the tables, and returns them. Their names in the bucket are doomed until `forget_1`. Uploads
-- that never ended are doomed as well, and changes that no follower waits for any more are removed.
create function remove_packs_1(p_condemned_ms bigint, p_limit bigint)
returns table (pack bytea, bytes bigint, objects bigint, uses bigint, condemned_ms bigint)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    due bytea[];
begin
    perform durable();
    select coalesce(array_agg(hash), '{}') into due from (
        select hash from pack where condemned_at <= clock_timestamp() - ttl(p_condemned_ms)
        order by hash limit p_limit for update skip locked
    ) p;
    return query select s.* from pack p, status_of(p) s where p.hash = any (due) order by s.pack;
    due := due || array(
        select hash from blob where log = 0 and sum is null and at < clock_timestamp() - interval '1 day' limit 1000
    );
    insert into doomed
    select 'pack/' || encode(hash, 'hex') || '/', clock_timestamp() from blob where log = 0 and hash = any (due) and data is null
    on conflict (name) do nothing;
    delete from object where pack = any (due);
    delete from blob where log = 0 and hash = any (due);
    delete from pack where hash = any (due);
    delete from change where id in (select id from change where at < clock_timestamp() - interval '90 days' order by id limit 10000);
end
$$;

create function doomed_1() returns table (doomed text)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select name from doomed order by name limit 10000
$$;

-- These names are gone from the bucket. Those that an upload may still bring back are kept.
create function forget_1(p_names text[]) returns table (answer text)
language plpgsql security definer set search_path = @schema@, pg_temp as $$
begin
    delete from doomed where name = any (p_names) and until <= clock_timestamp();
    return query select 'done';
end
$$;

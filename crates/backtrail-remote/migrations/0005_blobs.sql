-- Blobs: payloads of a log, and packs. The bytes come first, then the line that names them.

-- The number under which a log keeps its blobs: 0 for packs, null if the log was purged. The lock lets no purge pass.
create function keeper(p_owner int, p_id text, p_pack boolean) returns bigint
language plpgsql as $$
declare
    l log;
begin
    if not p_pack then
        insert into log (owner, id) values (p_owner, p_id) on conflict do nothing;
    end if;
    select * into l from log where owner = p_owner and id = p_id for share;
    return case when l.purged_at is not null then null when p_pack then 0 else l.no end;
end
$$;

-- Without bytes: begins an upload, and says what is there already. With bytes: stores them here.
create function put_1(p_owner int, p_id text, p_pack boolean, p_hash bytea, p_bytes bigint, p_sum bytea, p_data bytea)
returns table (answer text, bytes bigint, sum bytea, here boolean)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    k bigint := keeper(p_owner, p_id, p_pack);
    b blob;
begin
    perform durable();
    if k is null then
        return query select 'purged', null::bigint, null::bytea, null::boolean;
        return;
    end if;
    insert into blob (log, hash, bytes, sum, data)
    values (k, p_hash, p_bytes, case when p_data is not null then p_sum end, p_data) on conflict do nothing;
    if found and p_data is null then
        return query select 'upload', p_bytes, null::bytea, false;
        return;
    end if;
    select * into strict b from blob where log = k and hash = p_hash for update;
    if b.sum is null and p_data is not null then
        update blob set bytes = p_bytes, sum = p_sum, data = p_data where log = k and hash = p_hash returning * into b;
    end if;
    if p_pack and b.sum is not null then
        insert into pack (hash) values (p_hash) on conflict do nothing;
    end if;
    return query select case when b.sum is null then 'upload' else 'stored' end, b.bytes, b.sum, b.data is not null;
end
$$;

-- An upload has ended. `p_instead_of` is the sum of what is recorded, but missing in the bucket. If the answer is
-- `superseded` or `purged`, the client removes what it uploaded.
create function uploaded_1(p_owner int, p_id text, p_pack boolean, p_hash bytea, p_bytes bigint, p_sum bytea, p_instead_of bytea)
returns table (answer text)
language plpgsql security definer set search_path = @schema@, pg_temp set lock_timeout = '20s' as $$
#variable_conflict use_column
declare
    k bigint := keeper(p_owner, p_id, p_pack);
    b blob;
begin
    perform durable();
    if k is null then
        return query select 'purged';
        return;
    end if;
    insert into blob (log, hash, bytes) values (k, p_hash, p_bytes) on conflict do nothing;
    select * into strict b from blob where log = k and hash = p_hash for update;
    if b.sum is not null and b.sum is distinct from p_sum and b.sum is distinct from p_instead_of then
        return query select 'superseded';
        return;
    end if;
    update blob set bytes = p_bytes, sum = p_sum, data = null where log = k and hash = p_hash;
    if p_pack then
        insert into pack (hash) values (p_hash) on conflict do nothing;
    end if;
    return query select 'done';
end
$$;

-- Which of these are recorded, with what finds them in the bucket.
create function blobs_1(p_owner int, p_id text, p_pack boolean, p_hashes bytea[])
returns table (hash bytea, bytes bigint, sum bytea, here boolean)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select b.hash, b.bytes, b.sum, b.data is not null from blob b
    where b.sum is not null and b.hash = any (p_hashes)
        and b.log = case when p_pack then 0 else (select no from log where owner = p_owner and id = p_id) end
$$;

-- A blob, or a part of it. `data` is null if the bytes are in the bucket.
create function get_1(p_owner int, p_id text, p_pack boolean, p_hash bytea, p_first bigint, p_bytes bigint)
returns table (bytes bigint, sum bytea, here boolean, data bytea)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select b.bytes, b.sum, b.data is not null,
        case when p_first is null then b.data
            when p_first <= b.bytes and p_bytes <= b.bytes - p_first then substring(b.data from (p_first + 1)::int for p_bytes::int) end
    from blob b
    where b.sum is not null and b.hash = p_hash
        and b.log = case when p_pack then 0 else (select no from log where owner = p_owner and id = p_id) end
$$;

-- What a remote keeps. Only the functions of later files touch these tables; clients have no right to them.
-- `@schema@` is replaced by the name of the schema, and the search path is that schema alone.

create table about (
    only_row boolean primary key default true check (only_row),
    version int not null,
    -- Clients that are older than this are refused.
    oldest_client int not null,
    -- What is added to a transaction's number to make a change's: see `changes_1`.
    change_base bigint not null default 0
);

-- A session or workspace. One that was never leased (fence 0) counts as absent: its payloads came first. After a
-- purge only the row itself is left, and refuses the id.
create table log (
    no bigint generated always as identity primary key,
    owner smallint not null,
    id text collate "C" not null,
    -- The end of the newest trail; null before the first.
    trail bigint,
    seq bigint,
    sum bigint,
    fence bigint not null default 0,
    holder text,
    lease_until timestamptz,
    changed_at timestamptz not null default clock_timestamp(),
    bytes bigint not null default 0,
    deleted_at timestamptz,
    purged_at timestamptz,
    wrapped_key bytea not null default '',
    unique (owner, id)
) with (fillfactor = 60);

-- A trail and its first line. The end is that of the log as long as the trail is the newest.
create table trail (
    log bigint not null references log,
    no bigint not null,
    opener_seq bigint not null,
    opener_sum bigint not null,
    opener bytea not null,
    end_seq bigint not null,
    end_sum bigint not null,
    change bigint not null,
    primary key (log, no)
);

-- The lines after a trail's opener.
create table record (
    log bigint not null,
    trail bigint not null,
    seq bigint not null,
    sum bigint not null,
    -- The change that appended it, so that a purge finds the changes of a log without another index.
    change bigint not null,
    line bytea not null,
    primary key (log, trail, seq)
) partition by hash (log);

do $$
begin
    for part in 0..31 loop
        execute format('create table record_%s partition of record for values with (modulus 32, remainder %s)', part, part);
    end loop;
end
$$;

-- What was appended, for followers. One transaction, one change: its number is the transaction's.
create table change (
    id bigint primary key,
    log bigint not null,
    trail bigint not null,
    seq bigint not null,
    sum bigint not null,
    at timestamptz not null,
    holder text not null
);

-- Payloads of a log, and packs (of log 0). The bytes are here or in the bucket.
create table blob (
    log bigint not null,
    hash bytea not null,
    bytes bigint not null,
    -- The hash of the bytes as they were stored; null while they are being stored in the bucket.
    sum bytea,
    at timestamptz not null default clock_timestamp(),
    data bytea,
    primary key (log, hash)
);
create index on blob (at) where sum is null;
-- Parts of a blob are read without decompressing all of it.
alter table blob alter column data set storage external;

-- A pack that was stored. Nothing relies on one that has no row.
create table pack (
    hash bytea primary key,
    uses bigint not null default 0,
    condemned_at timestamptz
) with (fillfactor = 70);

create sequence seal;

-- Where an object is. If several packs have it, the one that was sealed last is read.
create table object (
    id bytea not null,
    pack bytea not null,
    first bigint not null,
    bytes bigint not null,
    seal bigint not null,
    primary key (id, pack)
);
create index on object (pack);

-- Names in the bucket that have to go. A name that ends in a slash stands for everything below it.
create table doomed (
    name text collate "C" primary key,
    -- An upload that had begun may still arrive: until then the name is looked for again.
    until timestamptz not null
);

-- What a client asks before it works with a remote.

-- Whether the client may call a function.
create function may(p_function text) returns boolean
language sql stable as $$
    select coalesce(bool_or(has_function_privilege(session_user, oid, 'execute')), false)
    from pg_proc where proname = p_function and pronamespace = '@schema@'::regnamespace
$$;

create function about_1()
returns table (
    version int, oldest_client int, now_ms bigint, server text, syncs boolean,
    may_read boolean, may_append boolean, may_purge boolean
)
language sql stable security definer set search_path = @schema@, pg_temp as $$
    select version, oldest_client, to_ms(clock_timestamp()), current_setting('server_version'), current_setting('fsync') = 'on',
        may('status_1'), may('append_1'), may('purge_1')
    from about
$$;

//! The roles of a remote, and what each may do.
//!
//! - The *owner* owns the tables and functions, and cannot log in. Functions run with its rights.
//! - A *reader* may call the functions that read.
//! - An *agent* may also lease, append, store blobs, and use the trash.
//! - An *admin* may also purge and remove packs.
//!
//! None but the owner has rights to a table.

/// Functions of readers.
const READ: &[&str] = &[
    "about_1",
    "blobs_1",
    "changes_1",
    "get_1",
    "list_1",
    "locate_1",
    "packs_1",
    "read_1",
    "status_1",
    "trails_1",
];

/// What agents have beyond readers.
const WRITE: &[&str] = &[
    "append_1",
    "begin_1",
    "delete_1",
    "lease_1",
    "put_1",
    "renew_1",
    "seal_1",
    "uploaded_1",
];

/// What admins have beyond agents.
const ADMIN: &[&str] = &[
    "condemn_1",
    "doomed_1",
    "forget_1",
    "purge_1",
    "remove_packs_1",
];

/// Returns the statement that creates the roles that are missing. A role belongs to all databases of a
/// server, so another one may have it already, or create it at this moment.
pub(crate) fn create(schema: &str) -> String {
    let mut statement = String::from("do $$\nbegin\n");
    for role in ["owner", "reader", "agent", "admin"] {
        statement += &format!(
            "if not exists (select from pg_roles where rolname = '{schema}_{role}') then\n\
             begin create role {schema}_{role} nologin; exception when duplicate_object or unique_violation then null; end;\n\
             end if;\n"
        );
    }
    // The one who sets up has to become the owner, and is no member of it by itself.
    statement += &format!(
        "if not pg_has_role(current_user, '{schema}_owner', 'member') then\n\
         execute format('grant {schema}_owner to %I', current_user);\n\
         end if;\n\
         if not pg_has_role('{schema}_agent', '{schema}_reader', 'member') then grant {schema}_reader to {schema}_agent; end if;\n\
         if not pg_has_role('{schema}_admin', '{schema}_agent', 'member') then grant {schema}_agent to {schema}_admin; end if;\n\
         end\n$$"
    );
    statement
}

/// Returns the statements that give the roles their rights, and take all others.
pub(crate) fn grant(schema: &str) -> String {
    let mut statements = format!(
        "revoke all on schema {schema} from public;\n\
         revoke all on all tables in schema {schema} from public;\n\
         revoke all on all functions in schema {schema} from public;\n\
         grant usage on schema {schema} to {schema}_reader;\n"
    );
    for (role, functions) in [("reader", READ), ("agent", WRITE), ("admin", ADMIN)] {
        for function in functions {
            statements +=
                &format!("grant execute on function {schema}.{function} to {schema}_{role};\n");
        }
    }
    statements
}

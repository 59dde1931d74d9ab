//! The tables of a database and their columns, from the statements that created them.

use super::btree::{Cursor, Row};
use super::pages::Pages;
use super::record::Value;
use crate::error::Result;

/// The tables of a database.
#[derive(Debug)]
pub(super) struct Schema {
    tables: Vec<Table>,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(super) root: u32,
    pub(crate) columns: Vec<Column>,
}

/// A column that rows store.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether it is another name of the rowid.
    pub(super) is_rowid: bool,
    pub(super) is_real: bool,
    /// The value in rows that are older than the column.
    pub(super) default: Value<'static>,
}

/// How many tables are looked at.
const MAX_TABLES: usize = 10_000;

impl Schema {
    pub(super) fn read(pages: &Pages) -> Result<Self> {
        let column = |name: &str| Column {
            name: name.to_owned(),
            is_rowid: false,
            is_real: false,
            default: Value::Null,
        };
        let names = ["type", "name", "tbl_name", "rootpage", "sql"];
        let master = Table {
            name: "sqlite_schema".to_owned(),
            root: 1,
            columns: names.map(column).into(),
        };
        let mut tables = Vec::new();
        let mut cursor = Cursor::new(pages, &master);
        cursor.rewind()?;
        loop {
            match cursor.next() {
                Ok(None) => break,
                // What cannot be read costs its own table only.
                Err(_) => {}
                Ok(Some(row)) if tables.len() < MAX_TABLES => tables.extend(Table::defined(&row)),
                Ok(Some(_)) => {}
            }
        }
        Ok(Self { tables })
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter()
    }

    pub(super) fn table(&self, name: &str) -> Option<&Table> {
        let is_named = |table: &&Table| table.name.eq_ignore_ascii_case(name);
        self.tables.iter().find(is_named)
    }
}

impl Table {
    /// Returns the table that a row of the schema defines. `None` if it defines none, or cannot
    /// be read.
    fn defined(row: &Row<'_>) -> Option<Self> {
        let value = |column| row.value(column).ok();
        let (kind, name, sql) = (value(0)?, value(1)?, value(4)?);
        let Value::Integer(root) = value(3)? else {
            return None;
        };
        (kind.text()? == "table").then_some(())?;
        Some(Self {
            name: name.text()?.to_owned(),
            root: u32::try_from(root).ok()?,
            columns: columns(sql.text()?)?,
        })
    }

    /// Returns the number of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        let is_named = |column: &Column| column.name.eq_ignore_ascii_case(name);
        self.columns.iter().position(is_named)
    }
}

/// Returns the columns that a `CREATE TABLE` statement defines. `None` if it is another
/// statement, or of a table whose rows have no rowid.
fn columns(sql: &str) -> Option<Vec<Column>> {
    let tokens = tokens(sql);
    let open = tokens.iter().position(|token| token.is("("))?;
    let mut depth = 0;
    let mut definitions: Vec<Vec<&Token<'_>>> = vec![Vec::new()];
    let mut after = tokens.len();
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" if !token.quoted => depth += 1,
            ")" if !token.quoted => depth -= 1,
            "," if !token.quoted && depth == 1 => {
                definitions.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            after = at;
            break;
        }
        if at > open {
            definitions.last_mut()?.push(token);
        }
    }
    if tokens[after.min(tokens.len())..]
        .iter()
        .any(|token| token.is("WITHOUT"))
    {
        return None;
    }
    let constraints = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
    let is_constraint = |definition: &[&Token<'_>]| {
        let first = definition.first();
        first.is_none_or(|first| constraints.iter().any(|word| first.is(word)))
    };
    let mut columns: Vec<Column> = definitions
        .iter()
        .filter(|definition| !is_constraint(definition))
        .filter_map(|definition| column(definition))
        .collect();
    for definition in definitions
        .iter()
        .filter(|definition| is_constraint(definition))
    {
        mark_key(definition, &mut columns, &definitions);
    }
    Some(columns)
}

/// Returns the column of a definition. `None` if rows do not store it.
fn column(definition: &[&Token<'_>]) -> Option<Column> {
    let (name, rest) = definition.split_first()?;
    let has = |words: &[&str]| {
        let mut windows = rest.windows(words.len());
        windows.any(|window| window.iter().zip(words).all(|(token, word)| token.is(word)))
    };
    if has(&["AS", "("]) && !has(&["STORED"]) {
        return None;
    }
    let type_name = type_name(rest);
    let is_real = ["REAL", "FLOA", "DOUB"]
        .iter()
        .any(|part| type_name.contains(part));
    Some(Column {
        name: name.unquoted(),
        is_rowid: type_name == "INTEGER"
            && has(&["PRIMARY", "KEY"])
            && !has(&["PRIMARY", "KEY", "DESC"]),
        is_real: is_real && !type_name.contains("INT"),
        default: default(rest),
    })
}

/// Returns the words before the first constraint.
fn type_name(rest: &[&Token<'_>]) -> String {
    let ends = [
        "CONSTRAINT",
        "PRIMARY",
        "NOT",
        "NULL",
        "UNIQUE",
        "CHECK",
        "DEFAULT",
        "COLLATE",
        "REFERENCES",
        "GENERATED",
        "AS",
        "(",
    ];
    let words = rest
        .iter()
        .take_while(|token| !ends.iter().any(|end| token.is(end)));
    let words: Vec<String> = words
        .map(|token| token.unquoted().to_ascii_uppercase())
        .collect();
    words.join(" ")
}

/// Returns the default of a column, if it is a plain value.
fn default(rest: &[&Token<'_>]) -> Value<'static> {
    let Some(at) = rest.iter().position(|token| token.is("DEFAULT")) else {
        return Value::Null;
    };
    let (sign, token) = match (rest.get(at + 1), rest.get(at + 2)) {
        (Some(sign), Some(number)) if sign.is("-") => (-1, number),
        (Some(token), _) => (1, token),
        (None, _) => return Value::Null,
    };
    if token.text.starts_with('\'') {
        return Value::Text(token.unquoted().into_bytes().into());
    }
    if let Ok(number) = token.text.parse::<i64>() {
        return Value::Integer(sign * number);
    }
    match token.text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Real(sign as f64 * number),
        _ if token.is("TRUE") => Value::Integer(1),
        _ if token.is("FALSE") => Value::Integer(0),
        _ => Value::Null,
    }
}

/// Marks the column that a table's `PRIMARY KEY (column)` makes another name of the rowid.
fn mark_key(constraint: &[&Token<'_>], columns: &mut [Column], definitions: &[Vec<&Token<'_>>]) {
    let start = constraint.iter().position(|token| token.is("PRIMARY"));
    let Some(start) = start else { return };
    if let [_, key, open, name, close] = constraint.get(start..start + 5).unwrap_or_default()
        && key.is("KEY")
        && open.is("(")
        && close.is(")")
    {
        let name = name.unquoted();
        let is_integer = definitions.iter().any(|definition| {
            let names = definition
                .first()
                .is_some_and(|first| first.unquoted() == name);
            names && type_name(&definition[1..]) == "INTEGER"
        });
        for column in columns.iter_mut().filter(|column| column.name == name) {
            column.is_rowid |= is_integer;
        }
    }
}

/// A word, a quoted name or text, or a sign in a statement.
#[derive(Debug, PartialEq, Eq)]
struct Token<'t> {
    text: &'t str,
    quoted: bool,
}

impl Token<'_> {
    /// Returns whether it is a word or a sign of SQL.
    fn is(&self, word: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(word)
    }

    /// Returns a name or a text without its quotes.
    fn unquoted(&self) -> String {
        if !self.quoted {
            return self.text.to_owned();
        }
        let end = self.text.chars().next_back().unwrap_or('"');
        let inner = self.text.get(1..self.text.len() - 1).unwrap_or_default();
        match end {
            ']' => inner.to_owned(),
            quote => inner.replace(&format!("{quote}{quote}"), &quote.to_string()),
        }
    }
}

/// Splits a statement; comments and blanks are left out.
fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (len, kept, quoted) = match first {
            _ if first.is_whitespace() => (first.len_utf8(), false, false),
            '-' if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), false, false),
            '/' if rest.starts_with("/*") => (
                rest.find("*/").map_or(rest.len(), |end| end + 2),
                false,
                false,
            ),
            '[' => (rest.find(']').map_or(rest.len(), |end| end + 1), true, true),
            '"' | '`' | '\'' => (quoted_len(rest, first), true, true),
            _ if is_word(first) => {
                let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (len, true, false)
            }
            _ => (first.len_utf8(), true, false),
        };
        let (text, after) = rest.split_at(len);
        if kept {
            tokens.push(Token { text, quoted });
        }
        rest = after;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// Returns the length of a quoted text at the beginning. A doubled quote does not end it.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = text.get(at..).and_then(|rest| rest.find(quote)) {
        at += end + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

//! The values of a row.

use std::borrow::Cow;

use super::pages::Encoding;
use super::varint;

/// A value in a database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'v> {
    Null,
    Integer(i64),
    Real(f64),
    /// In UTF-8, unless the database is damaged.
    Text(Cow<'v, [u8]>),
    Blob(Cow<'v, [u8]>),
}

impl Value<'_> {
    /// Returns a text that is UTF-8.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Returns a value that borrows nothing.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Integer(number) => Value::Integer(number),
            Value::Real(number) => Value::Real(number),
            Value::Text(bytes) => Value::Text(Cow::Owned(bytes.into_owned())),
            Value::Blob(bytes) => Value::Blob(Cow::Owned(bytes.into_owned())),
        }
    }
}

/// Where a value is in a row, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    serial_type: u64,
    pub(super) start: u64,
    pub(super) len: u64,
}

/// How many columns a row can have.
const MAX_COLUMNS: usize = 2_000;

/// Returns the length of a row's header. `None` if the row is damaged.
pub(super) fn header_len(row: &[u8]) -> Option<usize> {
    usize::try_from(varint(row)?.0).ok()
}

/// Returns where the values of a row are, from its header. `None` if it is damaged.
pub(super) fn places(header: &[u8]) -> Option<Vec<Place>> {
    let (len, mut at) = varint(header)?;
    let end = usize::try_from(len).ok()?;
    let mut start = len;
    let mut places = Vec::new();
    while at < end {
        let (serial_type, used) = varint(header.get(at..end)?)?;
        at += used;
        let len = match serial_type {
            0 | 8 | 9 => 0,
            1..=4 => serial_type,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (serial_type - 12) / 2,
        };
        places.push(Place {
            serial_type,
            start,
            len,
        });
        start = start.checked_add(len)?;
        if places.len() > MAX_COLUMNS {
            return None;
        }
    }
    Some(places)
}

/// Returns the value of these bytes.
pub(super) fn value(place: Place, bytes: Cow<'_, [u8]>, encoding: Encoding) -> Value<'_> {
    let number = || {
        let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
        let start = if negative { -1 } else { 0 };
        bytes
            .iter()
            .fold(start, |number: i64, byte| number << 8 | i64::from(*byte))
    };
    match place.serial_type {
        0 => Value::Null,
        1..=6 => Value::Integer(number()),
        7 => Value::Real(f64::from_bits(number().cast_unsigned())),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        odd if odd % 2 == 1 => Value::Text(to_utf8(bytes, encoding)),
        _ => Value::Blob(bytes),
    }
}

fn to_utf8(bytes: Cow<'_, [u8]>, encoding: Encoding) -> Cow<'_, [u8]> {
    let read: fn([u8; 2]) -> u16 = match encoding {
        Encoding::Utf8 => return bytes,
        Encoding::Utf16Le => u16::from_le_bytes,
        Encoding::Utf16Be => u16::from_be_bytes,
    };
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| read([pair[0], pair[1]]))
        .collect();
    Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
}

//! The rows of a table: a tree of pages.

use std::borrow::Cow;
use std::sync::Arc;

use super::pages::Pages;
use super::record::{self, Place, Value};
use super::schema::Table;
use super::{u16_at, u32_at, varint};
use crate::error::Result;

/// How deep a tree can be; SQLite's own are not deeper.
const MAX_DEPTH: usize = 20;
/// The longest value that is read.
const MAX_VALUE: u64 = 256 << 20;
/// How many pages a cursor keeps.
const CACHED: usize = 64;

const INTERIOR: u8 = 5;
const LEAF: u8 = 13;

/// Reads the rows of a table.
#[derive(Debug)]
pub(crate) struct Cursor<'s> {
    pages: &'s Pages,
    table: &'s Table,
    cache: Vec<Option<(u32, Arc<[u8]>)>>,
    /// The leaf in which a row was found last: the next one is often there too.
    leaf: Option<(u32, Arc<[u8]>)>,
    /// The way to the next row: pages, and the next cell of each.
    way: Vec<(Arc<[u8]>, usize)>,
    /// How many pages may still be visited: a damaged tree may contain itself.
    left: u64,
}

impl<'s> Cursor<'s> {
    pub(super) fn new(pages: &'s Pages, table: &'s Table) -> Self {
        Self {
            pages,
            table,
            cache: vec![None; CACHED],
            leaf: None,
            way: Vec::new(),
            left: 0,
        }
    }

    /// Goes to the first row.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        self.way.clear();
        self.left = u64::from(self.pages.count);
        self.descend(self.table.root)
    }

    /// Returns the next row in the order of rowids. After an error, it continues behind what
    /// cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'s>>> {
        while let Some((page, cell)) = self.way.last_mut() {
            let (page, at) = (Arc::clone(page), *cell);
            *cell += 1;
            let head = Head::new(&page, self.table.root == 1 && self.way.len() == 1);
            if head.is_leaf() {
                match head.cell(at) {
                    Some(cell) => return self.row(&page, cell).map(Some),
                    None => drop(self.way.pop()),
                }
            } else {
                match head.child(at) {
                    Some(child) => self.descend(child)?,
                    None => drop(self.way.pop()),
                }
            }
        }
        Ok(None)
    }

    /// Returns the row with a rowid.
    pub(crate) fn find(&mut self, rowid: i64) -> Result<Option<Row<'s>>> {
        let mut number = match &self.leaf {
            Some((leaf, page)) if Head::new(page, *leaf == 1).spans(rowid) => *leaf,
            _ => self.table.root,
        };
        for _ in 0..MAX_DEPTH {
            let page = self.page(number)?;
            let head = Head::new(&page, number == 1);
            if head.is_leaf() {
                let at = head.search(rowid);
                let Some(cell) = head.cell(at) else {
                    return Ok(None);
                };
                self.leaf = Some((number, Arc::clone(&page)));
                let row = self.row(&page, cell)?;
                return Ok((row.rowid == rowid).then_some(row));
            }
            let Some(child) = head.child(head.search(rowid)) else {
                break;
            };
            number = child;
        }
        Err(self.pages.damaged("a table's pages make no tree"))
    }

    fn descend(&mut self, number: u32) -> Result<()> {
        if self.way.len() >= MAX_DEPTH || self.left == 0 {
            self.way.clear();
            return Err(self.pages.damaged("a table's pages make no tree"));
        }
        self.left -= 1;
        let page = self.page(number)?;
        let kind = Head::new(&page, number == 1).kind;
        if !matches!(kind, INTERIOR | LEAF) {
            let what = format!("page {number} is not a page of a table");
            return Err(self.pages.damaged(what));
        }
        self.way.push((page, 0));
        Ok(())
    }

    fn page(&mut self, number: u32) -> Result<Arc<[u8]>> {
        let slot = number as usize % CACHED;
        if let Some((cached, page)) = &self.cache[slot]
            && *cached == number
        {
            return Ok(Arc::clone(page));
        }
        let page = self.pages.page(number)?;
        self.cache[slot] = Some((number, Arc::clone(&page)));
        Ok(page)
    }

    /// Reads the cell of a row at a byte.
    fn row(&self, page: &Arc<[u8]>, at: usize) -> Result<Row<'s>> {
        self.parse_row(page, at)
            .ok_or_else(|| self.pages.damaged("a row cannot be read"))
    }

    fn parse_row(&self, page: &Arc<[u8]>, at: usize) -> Option<Row<'s>> {
        let (len, used) = varint(page.get(at..)?)?;
        let at = at + used;
        let (rowid, used) = varint(page.get(at..)?)?;
        let at = at + used;
        let usable = self.pages.usable as u64;
        let local = match len <= usable - 35 {
            true => len,
            false => {
                let least = (usable - 12) * 32 / 255 - 23;
                let most = least + (len - least) % (usable - 4);
                if most <= usable - 35 { most } else { least }
            }
        };
        let end = at + usize::try_from(local).ok()?;
        page.get(at..end)?;
        let overflow = (local < len).then(|| u32_at(page, end));
        let mut row = Row {
            pages: self.pages,
            table: self.table,
            rowid: rowid.cast_signed(),
            page: Arc::clone(page),
            local: at..end,
            overflow,
            len,
            places: Vec::new(),
        };
        let header = row.bytes(0, record::header_len(row.local())? as u64).ok()?;
        row.places = record::places(&header)?;
        Some(row)
    }
}

/// The header of a page.
struct Head<'p> {
    page: &'p [u8],
    kind: u8,
    start: usize,
    cells: usize,
}

impl<'p> Head<'p> {
    fn new(page: &'p [u8], is_first: bool) -> Self {
        let start = if is_first { 100 } else { 0 };
        // The smallest cell has four bytes, and two for its place.
        let most = page.len() / 6;
        Self {
            page,
            kind: page[start],
            start,
            cells: usize::from(u16_at(page, start + 3)).min(most),
        }
    }

    fn is_leaf(&self) -> bool {
        self.kind == LEAF
    }

    /// Returns where a cell starts.
    fn cell(&self, at: usize) -> Option<usize> {
        let header = if self.is_leaf() { 8 } else { 12 };
        let pointer = self.start + header + at * 2;
        (at < self.cells).then(|| usize::from(u16_at(self.page, pointer)))
    }

    /// Returns the page below a cell; the last one is in the header.
    fn child(&self, at: usize) -> Option<u32> {
        match self.cell(at) {
            Some(cell) => Some(u32_at(self.page, cell)),
            None => (at == self.cells).then(|| u32_at(self.page, self.start + 8)),
        }
    }

    /// Returns the first cell whose rowid is not less.
    fn search(&self, rowid: i64) -> usize {
        let (mut low, mut high) = (0, self.cells);
        while low < high {
            let middle = low.midpoint(high);
            match self.rowid(middle) {
                Some(found) if found < rowid => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Returns whether a rowid is between those of the first and the last cell.
    fn spans(&self, rowid: i64) -> bool {
        let last = self.cells.checked_sub(1).and_then(|last| self.rowid(last));
        self.rowid(0).is_some_and(|first| first <= rowid) && last.is_some_and(|last| rowid <= last)
    }

    fn rowid(&self, at: usize) -> Option<i64> {
        let mut cell = self.cell(at)?;
        match self.is_leaf() {
            true => cell += varint(self.page.get(cell..)?)?.1,
            false => cell += 4,
        }
        Some(varint(self.page.get(cell..)?)?.0.cast_signed())
    }
}

/// A row of a table.
#[derive(Debug)]
pub(crate) struct Row<'s> {
    pages: &'s Pages,
    table: &'s Table,
    pub(crate) rowid: i64,
    page: Arc<[u8]>,
    local: std::ops::Range<usize>,
    overflow: Option<u32>,
    /// How long the row is in all.
    pub(crate) len: u64,
    places: Vec<Place>,
}

impl Row<'_> {
    /// Returns the part of the row that is in the tree itself.
    pub(crate) fn local(&self) -> &[u8] {
        &self.page[self.local.clone()]
    }

    /// Returns the value of a column.
    pub(crate) fn value(&self, column: usize) -> Result<Value<'_>> {
        let Some(definition) = self.table.columns.get(column) else {
            return Ok(Value::Null);
        };
        if definition.is_rowid {
            return Ok(Value::Integer(self.rowid));
        }
        let Some(place) = self.places.get(column).copied() else {
            // The column was added after the row was written.
            return Ok(definition.default.clone());
        };
        if place.len > MAX_VALUE {
            return Err(self.pages.damaged("a value is over 256 MiB long"));
        }
        let bytes = self.bytes(place.start, place.len)?;
        let value = record::value(place, bytes, self.pages.encoding);
        Ok(match value {
            // Whole numbers are stored as integers, to save space.
            Value::Integer(number) if definition.is_real => Value::Real(number as f64),
            value => value,
        })
    }

    /// Returns bytes of the row.
    fn bytes(&self, start: u64, len: u64) -> Result<Cow<'_, [u8]>> {
        let cut_off = || self.pages.damaged("a row is cut off");
        let end = start.checked_add(len).ok_or_else(cut_off)?;
        if end > self.len {
            return Err(cut_off());
        }
        let local = self.local();
        let in_local = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(local.len());
        let mut bytes = Cow::Borrowed(&local[in_local(start)..in_local(end)]);
        if end > local.len() as u64 {
            let bytes = bytes.to_mut();
            self.each_overflow(start, end, |part| bytes.extend_from_slice(part))?;
        }
        Ok(bytes)
    }

    /// Passes on all bytes of the row, in parts, as far as they can be read.
    pub(crate) fn each_part(&self, mut each: impl FnMut(&[u8])) {
        each(self.local());
        self.each_overflow(0, self.len, each).ok();
    }

    /// Passes on the bytes that are in overflow pages.
    fn each_overflow(&self, start: u64, end: u64, mut each: impl FnMut(&[u8])) -> Result<()> {
        let mut next = self.overflow.unwrap_or(0);
        let mut at = self.local.len() as u64;
        let content = self.pages.usable - 4;
        // As many pages as the row needs, so a chain that contains itself ends.
        while at < end {
            let page = self.pages.page(next)?;
            let from = start.saturating_sub(at).min(content as u64);
            let to = (end - at).min(content as u64);
            if from < to {
                // Both are at most a page's length.
                each(&page[4 + from as usize..4 + to as usize]);
            }
            next = u32_at(&page, 0);
            at += content as u64;
        }
        Ok(())
    }
}

//! As much of HTTP/1.1 as agents need from a model on loopback: one request per connection, with a
//! body of a given length or in chunks.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, with the query.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// A response, complete.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

/// The largest body that is read.
const BODY_LIMIT: u64 = 64 << 20;

impl Request {
    /// Reads a request. Returns none if the other side closes the connection without one.
    pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let first = line(&mut reader)?;
        let mut words = first.split_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let headers = headers(&mut reader)?;
        if headers
            .iter()
            .any(|(name, value)| name == "expect" && value.starts_with("100"))
        {
            (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        Ok(Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            body: body(&mut reader, &headers)?,
        }))
    }
}

impl Response {
    /// Writes the response; the connection ends with it.
    pub(crate) fn write(&self, mut stream: &TcpStream) -> io::Result<()> {
        let Self {
            status,
            content_type,
            body,
        } = self;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} -\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )?;
        stream.write_all(body)?;
        stream.flush()
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(1 << 20).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(headers);
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_ascii_lowercase()));
    }
}

fn body(reader: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let value = |wanted| headers.iter().find(|(name, _)| name == wanted);
    let mut body = Vec::new();
    if value("transfer-encoding").is_some_and(|(_, value)| value.contains("chunked")) {
        while let length @ 1.. = chunk_length(reader)? {
            take(reader, length, &mut body)?;
            line(reader)?;
        }
        line(reader)?;
    } else if let Some((_, length)) = value("content-length") {
        take(reader, length.parse().map_err(io::Error::other)?, &mut body)?;
    }
    Ok(body)
}

fn chunk_length(reader: &mut impl BufRead) -> io::Result<u64> {
    let line = line(reader)?;
    let digits = line.split(';').next().unwrap_or_default();
    u64::from_str_radix(digits.trim(), 16).map_err(io::Error::other)
}

fn take(reader: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len() as u64 + length > BODY_LIMIT {
        return Err(io::Error::other("the body is too large"));
    }
    let read = reader.take(length).read_to_end(body)?;
    if (read as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

//! A request of HTTP 1, read whole.

use std::io::{BufRead, Read as _, Write};

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads one; `None` if the peer went away instead of asking.
    pub(super) fn read(reader: &mut impl BufRead, writer: &mut impl Write) -> std::io::Result<Option<Self>> {
        let first = line(reader)?;
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = line(reader)?;
            let Some((name, value)) = line.split_once(':') else { break };
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if request.header("expect").eq_ignore_ascii_case("100-continue") {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = request.read_body(reader)?;
        Ok(Some(request))
    }

    /// The value of a header, by its name in small letters; empty if there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    fn read_body(&self, reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if self.header("transfer-encoding") == "chunked" {
            loop {
                let size = line(reader)?;
                let size = size.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16).map_err(std::io::Error::other)?;
                reader.by_ref().take(size).read_to_end(&mut body)?;
                line(reader)?;
                if size == 0 {
                    break;
                }
            }
        } else {
            let size = self.header("content-length").parse().unwrap_or(0);
            reader.take(size).read_to_end(&mut body)?;
        }
        Ok(body)
    }
}

fn line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Request {
        Request::read(&mut text.as_bytes(), &mut std::io::sink()).unwrap().unwrap()
    }

    #[test]
    fn bodies_are_read_by_length_and_by_chunks() {
        let one = read("POST /git/a.git/x?service=y HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcdef");
        assert_eq!(
            (one.path.as_str(), one.query.as_str(), one.body.as_slice()),
            ("/git/a.git/x", "service=y", &b"abc"[..])
        );
        let other = read("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n");
        assert_eq!(other.body, b"abcde");
    }

    #[test]
    fn nothing_is_no_request() {
        assert_eq!(Request::read(&mut &b""[..], &mut std::io::sink()).unwrap(), None);
    }
}

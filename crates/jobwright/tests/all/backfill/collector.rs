//! A server that takes batches, and strikes at one of them.

use crate::backfill::play::PLANTED;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What is done at a batch. Says whether it is answered.
pub(crate) type Strike = Box<dyn Fn(usize) -> Deed + Send + Sync>;

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It is taken and answered.
    Take,
    /// It is taken, and not answered.
    TakeOnly,
    /// It is neither taken nor answered.
    Nothing,
    /// It is refused with this status.
    Refuse(u16),
}

#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) port: u16,
    batches: Arc<Mutex<Vec<(String, String)>>>,
}

impl Collector {
    pub(crate) fn start(strike: impl Fn(usize) -> Deed + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = Self { port: listener.local_addr().unwrap().port(), batches: Arc::default() };
        let (taking, strike): (_, Arc<Strike>) = (collector.clone(), Arc::new(Box::new(strike)));
        let asked = Arc::new(Mutex::new(0));
        // They end with the process: nobody waits for them.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taking, strike, asked) = (taking.clone(), Arc::clone(&strike), Arc::clone(&asked));
                std::thread::spawn(move || taking.serve(&stream, &strike, &asked));
            }
        });
        collector
    }

    fn serve(&self, stream: &TcpStream, strike: &Strike, asked: &Mutex<usize>) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                match line.trim_end().split_once(": ") {
                    Some((name, value)) => drop(headers.insert(name.to_lowercase(), value.to_owned())),
                    None if line.trim_end().is_empty() => break,
                    None => {}
                }
            }
            let length: usize = headers.get("content-length")?.parse().ok()?;
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let body = String::from_utf8(body).unwrap();
            assert!(!body.contains(PLANTED), "a secret has left: {body}");
            // One at a time, so that nothing else is taken while somebody is struck.
            let mut asked = asked.lock().unwrap();
            *asked += 1;
            let deed = strike(*asked);
            if matches!(deed, Deed::Take | Deed::TakeOnly) {
                self.batches.lock().unwrap().push((headers["idempotency-key"].clone(), body));
            }
            drop(asked);
            let status = match deed {
                Deed::Take => 200,
                Deed::Refuse(status) => status,
                Deed::TakeOnly | Deed::Nothing => return None,
            };
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            (&mut &*stream).write_all(answer.as_bytes()).ok()?;
        }
    }

    /// Ids of the batches that were taken, in order.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.batches.lock().unwrap().iter().map(|(id, _)| id.clone()).collect()
    }

    /// What was taken, and how many objects were taken more than once.
    pub(crate) fn objects(&self) -> (BTreeMap<String, Value>, usize) {
        let mut objects = BTreeMap::new();
        let mut again = 0;
        for (_, body) in &*self.batches.lock().unwrap() {
            for line in body.lines() {
                let object: Value = serde_json::from_str(line).unwrap();
                let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
                let key = format!("{}/{}/{}", object["kind"].as_str().unwrap(), part("namespace"), part("name"));
                again += usize::from(objects.insert(key, object).is_some());
            }
        }
        (objects, again)
    }

    /// What a receiver has that drops a request whose key it has seen. The same key never has other content.
    pub(crate) fn honoured(&self) -> BTreeSet<String> {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for (key, body) in &*self.batches.lock().unwrap() {
            let first = known.entry(key.clone()).or_insert_with(|| body.clone());
            assert_eq!(first, body, "{key} has carried two contents");
        }
        let objects = known.values().flat_map(|body| body.lines()).map(|line| {
            let object: Value = serde_json::from_str(line).unwrap();
            let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            format!("{}/{}/{}", object["kind"].as_str().unwrap(), part("namespace"), part("name"))
        });
        objects.collect()
    }
}

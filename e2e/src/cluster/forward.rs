//! Hands connections on: the socket that listens was made outside the namespace, those that connect are made inside.

use crate::error::Error;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

/// Accepts on a socket that was handed over, and connects each to an address, until it is killed.
pub fn forward(listener: BorrowedFd<'_>, to: &str) -> Result<(), Error> {
    let listener =
        listener.as_fd().try_clone_to_owned().map_err(Error::io("take over the socket on standard input"))?;
    let listener = TcpListener::from(listener);
    loop {
        let Ok((outside, _)) = listener.accept() else {
            // Out of descriptors, or the peer has gone: neither lasts.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let to = to.to_owned();
        std::thread::spawn(move || {
            // Who cannot be connected sees the connection closed.
            if let Ok(inside) = TcpStream::connect(to) {
                let _ = join(&outside, &inside);
            }
        });
    }
}

/// Copies both ways until both have ended.
fn join(one: &TcpStream, other: &TcpStream) -> std::io::Result<()> {
    one.set_nodelay(true)?;
    other.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(|| copy(one, other));
        copy(other, one);
    });
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let copied = std::io::copy(&mut from, &mut to);
    // The end of one direction is not the end of the other, unless it broke.
    let _ = to.shutdown(if copied.is_ok() { Shutdown::Write } else { Shutdown::Both });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn the_end_of_a_question_is_handed_on_and_the_answer_comes_back() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap().to_string();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || forward(listener.as_fd(), &to));
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut question = String::new();
            stream.read_to_string(&mut question).unwrap();
            stream.write_all(question.to_uppercase().as_bytes()).unwrap();
        });
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answering.join().unwrap();
        assert_eq!(answer, "HELLO");
    }
}

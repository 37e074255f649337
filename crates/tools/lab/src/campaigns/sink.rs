//! The receiver of deliveries: it accepts everything, and knows which came again.

use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

const ACCEPTED: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const ID: &str = "webhook-id";
/// Longest body that is read; bodies of deliveries are shorter.
const BODY_LEN_MAX: usize = 1 << 20;

pub struct Sink {
    address: SocketAddr,
    arrivals: Arc<Mutex<Arrivals>>,
}

#[derive(Default)]
struct Arrivals {
    ids: HashSet<Box<str>>,
    repeated: usize,
}

impl Sink {
    /// Listens for as long as this program runs.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for the sink")?;
        let address = listener.local_addr()?;
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let own = Arc::clone(&arrivals);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = Arc::clone(&own);
                // A connection that breaks off is the sender's to repeat.
                std::thread::spawn(move || serve(stream, &own).ok());
            }
        });
        Ok(Self { address, arrivals })
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Different deliveries, and those that came more than once.
    pub fn counts(&self) -> (usize, usize) {
        let arrivals = self.arrivals.lock();
        (arrivals.ids.len(), arrivals.repeated)
    }
}

fn serve(stream: TcpStream, arrivals: &Mutex<Arrivals>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut body = Vec::new();
    let mut line = String::new();

    while let Some((id, len)) = head(&mut reader, &mut line)? {
        body.resize(len.min(BODY_LEN_MAX), 0);
        reader.read_exact(&mut body)?;
        {
            let mut arrivals = arrivals.lock();
            if !arrivals.ids.insert(id) {
                arrivals.repeated += 1;
            }
        }
        writer.write_all(ACCEPTED)?;
    }
    Ok(())
}

/// Reads the head of a request: its id, and the length of its body. `None` at the end.
fn head(
    reader: &mut impl BufRead,
    line: &mut String,
) -> std::io::Result<Option<(Box<str>, usize)>> {
    let mut id: Box<str> = "".into();
    let mut len = 0;
    loop {
        line.clear();
        if reader.read_line(line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            return Ok(Some((id, len)));
        }

        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case(ID) {
            id = value.trim().into();
        } else if name.eq_ignore_ascii_case("content-length") {
            len = value.trim().parse().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_differ_by_their_ids() {
        let sink = Sink::start().unwrap();
        let mut stream = TcpStream::connect(sink.address).unwrap();
        let mut answer = [0; ACCEPTED.len()];
        for id in ["act_1", "act_2", "act_1"] {
            write!(
                stream,
                "POST /hook HTTP/1.1\r\nWebhook-Id: {id}\r\nContent-Length: 2\r\n\r\n{{}}"
            )
            .unwrap();
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, ACCEPTED);
        }
        assert_eq!(sink.counts(), (2, 1));
    }
}

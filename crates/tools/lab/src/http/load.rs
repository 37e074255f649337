//! The load generator: one thread, many persistent connections, one request in flight on each.
//!
//! It waits on all sockets at once (epoll through mio), sends bytes that were rendered beforehand,
//! and parses as little of each answer as possible, so that one core of generator can saturate a
//! faster server on another. In an open loop it spins instead of sleeping: a timer's granularity
//! would otherwise show up as latency. If it shares its core with the system under test, it blocks
//! on the sockets, whose answers wake it at once, and spins only for the last moment before a
//! request is due.

use super::response::{self, Head};
use crate::measure::{Arrivals, Measurement, Pace, Recorder, Run, Schedule};
use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Pause before a request that the server pushed back is sent again.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// Longest sleep of an idle client that shares its core, and the delay that a timer may add to it.
const REST: Duration = Duration::from_micros(100);
const REST_LATE_MAX: Duration = Duration::from_micros(100);
const POLL_MAX: Duration = Duration::from_millis(100);

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Succeeded, with this many units (ranges, events).
    Done(u64),
    /// The server asked for a retry; the same bytes are sent again.
    PushedBack,
}

/// Produces requests and evaluates answers. A slot is one connection, with at most one request in
/// flight.
pub trait Source {
    /// Prepares the slot's next request, which is due at `due`.
    fn prepare(&mut self, slot: usize, due: Instant);
    /// The bytes of the slot's request.
    fn bytes(&self, slot: usize) -> &[u8];
    /// Where the slot's answer ends, once it is complete in what was received of it. Protocols
    /// other than HTTP find it in their own way.
    fn frame(&mut self, _slot: usize, received: &[u8]) -> Result<Option<Head>> {
        let head = response::parse_head(received)?;
        Ok(head.filter(|head| received.len() >= head.end()))
    }
    fn judge(&mut self, slot: usize, reply: &Reply<'_>) -> Result<Outcome>;
}

/// The server's answer to a slot's request.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    pub status: u16,
    /// Status line and header fields.
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// When the answer was complete.
    pub at: Instant,
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the request written so far, and whether the request is complete.
    written: usize,
    sending: bool,
    buffer: Vec<u8>,
    filled: usize,
    intended: Instant,
    /// Whether a request is in flight or waits for a retry.
    is_asked: bool,
}

struct Generator<'a, S> {
    address: SocketAddr,
    registry: Registry,
    connections: Vec<Connection>,
    source: &'a mut S,
    recorder: Recorder,
    idle: Vec<usize>,
    paused: Vec<(Instant, usize)>,
    in_flight: usize,
    pushed_back: u64,
}

pub struct Load {
    pub measured: Measurement,
    /// How often the server asked for a retry.
    pub pushed_back: u64,
    /// From the first request to the last answer.
    pub total: Duration,
}

/// Runs the load, and waits for every outstanding answer, as long as [`Pace::drain_max`]. Those
/// that are missing then are counted as unanswered.
pub fn run<S: Source>(
    address: SocketAddr,
    connections: usize,
    run: &Run,
    source: &mut S,
) -> Result<Load> {
    let sockets = Sockets::open(address, connections)?;
    // Requests are due from here on, and would all be late by what opening many connections takes.
    let start = Instant::now();
    let schedule = |rate_per_s| {
        let end = start + run.warm_up + run.duration;
        Box::new(Schedule::new(start, end, rate_per_s)) as Box<dyn Arrivals>
    };
    let arrivals = run.pace.rate_per_s().map(schedule);
    let course = Course { run: *run, start, arrivals, drain_max: run.pace.drain_max() };
    drive(sockets, course, source)
}

/// Sends a request at each arrival, from `start` on, and waits for every outstanding answer.
pub fn follow<S: Source>(
    sockets: Sockets,
    (start, duration): (Instant, Duration),
    arrivals: Box<dyn Arrivals>,
    source: &mut S,
) -> Result<Load> {
    // The arrivals determine the rate; this one is ignored.
    let run = Run { pace: Pace::OpenShared(1.0), warm_up: Duration::ZERO, duration };
    let drain_max = run.pace.drain_max();
    let course = Course { run, start, arrivals: Some(arrivals), drain_max };
    drive(sockets, course, source)
}

/// When requests begin, and how long the run waits for their answers behind its end.
struct Course {
    run: Run,
    start: Instant,
    /// `None` in a closed loop.
    arrivals: Option<Box<dyn Arrivals>>,
    drain_max: Duration,
}

/// Connections that are open, and what waits for them.
pub struct Sockets {
    address: SocketAddr,
    poll: Poll,
    connections: Vec<Connection>,
}

impl Sockets {
    pub fn open(address: SocketAddr, connections: usize) -> Result<Self> {
        let poll = Poll::new()?;
        let open = |slot| open(address, slot, poll.registry());
        let connections = (0..connections).map(open).collect::<Result<Vec<_>>>()?;
        Ok(Self { address, poll, connections })
    }
}

fn drive<S: Source>(
    Sockets { address, mut poll, connections }: Sockets,
    Course { run, start, mut arrivals, drain_max }: Course,
    source: &mut S,
) -> Result<Load> {
    let mut events = Events::with_capacity(connections.len().max(64));
    let mut generator = Generator {
        address,
        registry: poll.registry().try_clone()?,
        idle: (0..connections.len()).rev().collect(),
        connections,
        source,
        recorder: Recorder::new(&run, start)?,
        paused: Vec::new(),
        in_flight: 0,
        pushed_back: 0,
    };

    let end = generator.recorder.end();
    loop {
        let now = Instant::now();
        generator.launch(now, end, arrivals.as_deref_mut())?;

        let drained = generator.in_flight == 0
            && arrivals.as_ref().map_or(now >= end, |arrivals| arrivals.is_exhausted());
        if drained || now >= end + drain_max {
            break;
        }

        let idle_for = generator.idle_for(now, arrivals.as_deref());
        let wait = match run.pace {
            Pace::Closed => idle_for,
            Pace::Open(_) => Duration::ZERO,
            // A wait on sockets may end up to a millisecond late.
            Pace::OpenShared(_) => {
                Duration::from_millis(idle_for.as_millis().saturating_sub(1) as u64)
            }
        };

        match poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other.context("cannot wait for the connections")?,
        }

        let may_rest = matches!(run.pace, Pace::OpenShared(_)) && idle_for > REST + REST_LATE_MAX;
        if may_rest && wait.is_zero() && events.is_empty() {
            std::thread::sleep(REST);
        }

        for event in &events {
            generator.advance(event.token().0)?;
        }
    }

    generator.finish(start, arrivals)
}

fn open(address: SocketAddr, slot: usize, registry: &Registry) -> Result<Connection> {
    let stream = std::net::TcpStream::connect(address)
        .with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;

    let mut stream = TcpStream::from_std(stream);
    registry.register(&mut stream, Token(slot), Interest::READABLE | Interest::WRITABLE)?;
    Ok(Connection {
        stream,
        written: 0,
        sending: false,
        buffer: vec![0; READ_BUFFER_BYTES],
        filled: 0,
        intended: Instant::now(),
        is_asked: false,
    })
}

impl<S: Source> Generator<'_, S> {
    /// Sends every request that may be sent now: paused ones whose pause is over, and new ones.
    fn launch(
        &mut self,
        now: Instant,
        end: Instant,
        arrivals: Option<&mut (dyn Arrivals + 'static)>,
    ) -> Result<()> {
        while let Some(position) = self.paused.iter().position(|&(until, _)| until <= now) {
            let (_, slot) = self.paused.swap_remove(position);

            // A server that rejects a request before it has read the body closes the connection, so
            // the retry opens a new one.
            let intended = self.connections[slot].intended;
            self.connections[slot] = open(self.address, slot, &self.registry)?;
            self.connections[slot].intended = intended;
            self.send(slot)?;
        }

        match arrivals {
            Some(arrivals) => {
                while let Some(&slot) = self.idle.last()
                    && let Some(intended) = arrivals.take_due(now)
                {
                    self.idle.pop();
                    self.begin(slot, intended)?;
                }
            }
            None if now < end => {
                while let Some(slot) = self.idle.pop() {
                    self.begin(slot, Instant::now())?;
                }
            }
            None => {}
        }

        Ok(())
    }

    /// How long the client has nothing to do but to wait for answers.
    fn idle_for(&self, now: Instant, arrivals: Option<&(dyn Arrivals + 'static)>) -> Duration {
        let due =
            arrivals.filter(|_| !self.idle.is_empty()).and_then(|arrivals| arrivals.next_due());
        let moments = self.paused.iter().map(|&(until, _)| until).chain(due);
        moments
            .map(|moment| moment.saturating_duration_since(now))
            .min()
            .unwrap_or(POLL_MAX)
            .min(POLL_MAX)
    }

    fn begin(&mut self, slot: usize, intended: Instant) -> Result<()> {
        self.source.prepare(slot, intended);
        self.connections[slot].intended = intended;
        self.in_flight += 1;
        self.send(slot)
    }

    fn send(&mut self, slot: usize) -> Result<()> {
        let connection = &mut self.connections[slot];
        connection.written = 0;
        connection.sending = true;
        connection.is_asked = true;
        connection.write(self.source.bytes(slot))
    }

    /// Handles readiness of a slot's socket.
    fn advance(&mut self, slot: usize) -> Result<()> {
        if self.paused.iter().any(|&(_, paused)| paused == slot) {
            return Ok(());
        }
        let connection = &mut self.connections[slot];
        if !connection.is_asked {
            // A server closes idle connections; the next request opens a new one.
            if connection.stream.peek(&mut [0]).is_ok_and(|count| count == 0) {
                self.connections[slot] = open(self.address, slot, &self.registry)?;
            }
            return Ok(());
        }

        if connection.sending {
            connection.write(self.source.bytes(slot))?;
        }
        let source = &mut *self.source;
        let Some(head) = connection.read(|received| source.frame(slot, received))? else {
            return Ok(());
        };
        let now = Instant::now();
        let (before, body) = connection.buffer[..head.end()].split_at(head.body_start);
        let outcome =
            self.source.judge(slot, &Reply { status: head.status, head: before, body, at: now })?;

        connection.filled = 0;
        connection.is_asked = matches!(outcome, Outcome::PushedBack);

        match outcome {
            Outcome::Done(_) if connection.sending => {
                bail!("the server answered before it had received the whole request")
            }
            Outcome::Done(units) => {
                self.recorder.complete(connection.intended, now, units);
                self.in_flight -= 1;
                self.idle.push(slot);
            }
            Outcome::PushedBack => {
                self.pushed_back += 1;
                self.paused.push((now + RETRY_PAUSE, slot));
            }
        }

        Ok(())
    }

    fn finish(mut self, start: Instant, arrivals: Option<Box<dyn Arrivals>>) -> Result<Load> {
        let now = Instant::now();
        let mut unanswered =
            arrivals.map_or(0, |mut arrivals| self.recorder.abandon(&mut *arrivals, now));

        if self.in_flight > 0 {
            for (slot, connection) in self.connections.iter().enumerate() {
                if !self.idle.contains(&slot) {
                    unanswered += u64::from(self.recorder.give_up(connection.intended, now));
                }
            }
        }

        Ok(Load {
            measured: self.recorder.finish(unanswered),
            pushed_back: self.pushed_back,
            total: now - start,
        })
    }
}

impl Connection {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        while self.written < bytes.len() {
            match self.stream.write(&bytes[self.written..]) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot send a request"),
            }
        }
        self.sending = false;
        Ok(())
    }

    /// Reads until the answer is complete (and returns its head) or the socket would block.
    fn read(
        &mut self,
        mut frame: impl FnMut(&[u8]) -> Result<Option<Head>>,
    ) -> Result<Option<Head>> {
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }

            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read an answer"),
            }

            if let Some(head) = frame(&self.buffer[..self.filled])? {
                return Ok(Some(head));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc;

    const WINDOW: Duration = Duration::from_millis(500);
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    /// Sends the same request again and again, and counts the answers.
    #[derive(Default)]
    struct Repeated {
        answers: u64,
    }

    impl Source for Repeated {
        fn prepare(&mut self, _slot: usize, _due: Instant) {}

        fn bytes(&self, _slot: usize) -> &[u8] {
            b"x"
        }

        fn judge(&mut self, _slot: usize, _reply: &Reply<'_>) -> Result<Outcome> {
            self.answers += 1;
            Ok(Outcome::Done(1))
        }
    }

    /// A run of one connection, which sends one request. Its server answers after a time, or not
    /// before the run is over.
    fn measure(held: Option<Duration>, drain_max: Duration) -> (Load, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (over, waits) = mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0]).unwrap();
            if let Some(held) = held {
                std::thread::sleep(held);
                stream.write_all(ANSWER).unwrap();
            }
            let _ = waits.recv();
        });

        let run = Run { pace: Pace::Closed, warm_up: Duration::ZERO, duration: WINDOW };
        let sockets = Sockets::open(address, 1).unwrap();
        let course = Course { run, start: Instant::now(), arrivals: None, drain_max };
        let mut source = Repeated::default();
        let load = drive(sockets, course, &mut source).unwrap();
        drop(over);
        server.join().unwrap();
        (load, source.answers)
    }

    #[test]
    fn a_closed_loop_waits_for_what_is_under_way_at_its_end() {
        let (load, answers) = measure(Some(2 * WINDOW), Duration::from_secs(30));
        assert_eq!((answers, load.measured.requests, load.measured.unanswered), (1, 0, 0));
        assert!(Pace::Closed.drain_max() > Pace::Open(1.0).drain_max());
    }

    #[test]
    fn what_a_closed_loop_has_not_waited_for_is_unanswered() {
        let (load, answers) = measure(None, Duration::from_millis(1));
        assert_eq!((answers, load.measured.requests, load.measured.unanswered), (0, 0, 1));
        assert!(load.measured.latency.max_us > 0.0, "{:?}", load.measured);
    }
}

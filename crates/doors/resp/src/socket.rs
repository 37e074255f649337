//! The socket of a connection, which works while commands take their time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raingauge_objects::{Message, Subscriber};
use raingauge_resp::limits::RESP_READ_BYTES_MAX;
use raingauge_resp::{Parser, Protocol, Replies};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::commands::listening::write_message;
use crate::ending::Ending;
use crate::incoming::Incoming;
use crate::limits::RESP_OUTPUT_PATIENCE;
use crate::outgoing::Outgoing;

/// What the task around a connection looks at.
#[derive(Default)]
pub(crate) struct State {
    /// Commands run or replies wait.
    pub(crate) is_busy: AtomicBool,
    /// The connection ends once it is no longer busy.
    pub(crate) is_ending: AtomicBool,
}

/// The socket of a connection, with what arrived and is not parsed, and what is not sent.
pub(crate) struct Socket {
    pub(crate) reader: OwnedReadHalf,
    pub(crate) writer: OwnedWriteHalf,
    pub(crate) parser: Parser,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// Most bytes that may wait for the client behind a message.
    pub(crate) output_bytes_max: usize,
    pub(crate) state: Arc<State>,
}

impl Socket {
    /// Waits for commands that take their time or, if the work `blocks`, wait for other clients.
    /// What was answered before is sent in the meantime, and what arrives is read, up to a bound:
    /// so a client that leaves is noticed.
    pub(crate) async fn serve_during<T>(
        &mut self,
        mut work: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        blocks: bool,
    ) -> Result<T, Ending> {
        let mut is_open = true;

        loop {
            let is_sending = !self.outgoing.is_empty();
            self.state.is_busy.store(is_sending || !blocks, Ordering::Release);
            let is_reading = is_open && self.parser.pending_len() < RESP_READ_BYTES_MAX;
            let mut space = self.parser.space();

            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                sent = self.outgoing.pump(&self.writer), if is_sending => sent?,
                read = self.reader.read_buf(&mut space), if is_reading => match read {
                    Ok(0) if blocks => return Err(Ending::Client),
                    // It may still read the replies to what it sent.
                    Ok(0) => is_open = false,
                    Ok(_) => {}
                    Err(_) => return Err(Ending::Network),
                },
            }
        }
    }

    /// As [`Socket::serve_during`], for work that waits for other clients. The messages that arrive
    /// for the client in the meantime are sent, all of them before the reply of the work.
    pub(crate) async fn serve_listening<T>(
        &mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
        subscriber: &Subscriber,
        protocol: Protocol,
    ) -> Result<T, Ending> {
        let mut replies = Replies::new(protocol);

        loop {
            let message = tokio::select! {
                biased;
                done = self.serve_during(work.as_mut(), true) => {
                    while let Some(message) = subscriber.try_next() {
                        self.push_message(&message, &mut replies)?;
                    }
                    return done;
                }
                message = subscriber.next() => message.ok_or(Ending::Output)?,
            };
            self.push_message(&message, &mut replies)?;

            // Many messages must not keep what ends the connection from its turn.
            tokio::task::yield_now().await;
        }
    }

    /// Puts a message of a channel behind the replies, unless too many bytes wait for the client.
    pub(crate) fn push_message(
        &mut self,
        message: &Message,
        replies: &mut Replies,
    ) -> Result<(), Ending> {
        write_message(message, replies);
        self.outgoing.push(replies.take(), message.stamp);

        let is_full = self.outgoing.len() > self.output_bytes_max;
        if is_full { Err(Ending::Output) } else { Ok(()) }
    }

    /// Waits until at most `len_max` bytes of replies are left. A client may send all of its
    /// commands before it reads the first reply: so what arrives is read, up to `read_max` bytes.
    /// A client that neither reads nor sends for a time is given up.
    pub(crate) async fn make_room(
        &mut self,
        len_max: usize,
        read_max: usize,
    ) -> Result<(), Ending> {
        let mut sent = self.outgoing.sent();
        let mut is_open = true;

        loop {
            self.incoming.set(self.parser.pending_len());
            let has_room = self.parser.pending_len() < read_max && !self.incoming.is_too_much();
            let is_reading = is_open && has_room;
            let mut space = self.parser.space();

            tokio::select! {
                biased;
                result = self.outgoing.pump_below(&self.writer, len_max) => return result,
                read = self.reader.read_buf(&mut space), if is_reading => match read {
                    Ok(0) => is_open = false,
                    Ok(_) => {}
                    Err(_) => return Err(Ending::Network),
                },
                () = tokio::time::sleep(RESP_OUTPUT_PATIENCE) => {
                    if self.outgoing.sent() == sent {
                        return Err(Ending::Output);
                    }
                    sent = self.outgoing.sent();
                }
            }
        }
    }
}

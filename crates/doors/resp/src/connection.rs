//! One connection: reads, runs commands, and sends their replies in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use raingauge_objects::{Ran, Session, Subscriber};
use raingauge_resp::{
    Command, Drain, Failure, Flags, Gate, Id, Parser, ParserLimits, Replies, Room, Spec,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::browser;
use crate::client::{Client, waits_with_writes};
use crate::commands;
use crate::desk::{Desk, ReplyMode};
use crate::ending::Ending;
use crate::limits::{RESP_END_MAX, RESP_OUTPUT_ALWAYS};
use crate::login::while_held;
use crate::observed::Observer;
use crate::outgoing::Outgoing;
use crate::server::Server;
use crate::slowlog::micros;
use crate::socket::{Socket, State};

/// Of this many drains, one is measured for the histogram of pipelines.
const PIPELINE_SAMPLE: u64 = 64;

/// A connection and all that it works with.
pub(crate) struct Connection {
    server: Arc<Server>,
    client: Arc<Client>,
    socket: Socket,
    drain: Drain,
    session: Session,
    desk: Desk,
    replies: Replies,
    observer: Observer,
    drains: u64,
}

/// What another part of a connection's loop found.
enum Event {
    Read(usize),
    Message(Option<raingauge_objects::Message>),
    Sent,
    Idle,
    Recheck,
}

impl Connection {
    pub(crate) fn new(
        server: Arc<Server>,
        client: Arc<Client>,
        stream: TcpStream,
        state: Arc<State>,
    ) -> Connection {
        let (reader, writer) = stream.into_split();
        let desk = Desk::new(Arc::clone(&server), Arc::clone(&client));
        let limits = ParserLimits {
            trusted: desk.login.is_done(),
            bulk_bytes_max: server.parameters.bulk_bytes_max(),
        };

        let session = server.objects.session();
        *client.unblocker.lock() = Some(session.unblocker());

        let socket = Socket {
            reader,
            writer,
            parser: Parser::new(limits),
            incoming: server.incoming(&client),
            outgoing: Outgoing::new(Arc::clone(&server.objects), Arc::clone(&server.unsent)),
            output_bytes_max: server.settings.output_bytes_max,
            state,
        };

        let mut connection = Connection {
            socket,
            session,
            observer: server.observed.observer(),
            replies: Replies::new(desk.protocol),
            drain: Drain::new(),
            drains: 0,
            server,
            client,
            desk,
        };
        connection.apply_login();
        connection
    }

    /// Serves the client until the connection ends.
    pub(crate) async fn run(&mut self) -> Ending {
        loop {
            let event = match self.wait().await {
                Ok(event) => event,
                Err(ending) => return ending,
            };

            let result = match event {
                Event::Read(0) => Err(Ending::Client),
                Event::Read(len) => self.received(len).await,
                Event::Message(Some(message)) => self.message(&message),
                Event::Message(None) => {
                    self.note_overrun();
                    Err(Ending::Output)
                }
                Event::Idle => Err(Ending::Idle),
                Event::Sent => self.sent(),
                Event::Recheck => self.renew_login(),
            };

            if let Err(ending) = result {
                if matches!(ending, Ending::Client | Ending::Quit | Ending::Protocol) {
                    // A client may end its side and still read. Whether the last replies arrive is
                    // the network's affair.
                    let pump = self.socket.outgoing.pump(&self.socket.writer);
                    let _ = tokio::time::timeout(RESP_END_MAX, pump).await;
                }
                return ending;
            }
        }
    }

    /// Waits until there is something to do. Replies are sent all the while.
    async fn wait(&mut self) -> Result<Event, Ending> {
        let is_sending = !self.socket.outgoing.is_empty();
        if !is_sending {
            self.socket.state.is_busy.store(false, Ordering::Release);
            if self.socket.state.is_ending.load(Ordering::Acquire) {
                return Err(Ending::Stopping);
            }
        }

        let subscriber = self.desk.subscriber.as_ref();
        let idle = self.server.parameters.idle_timeout().filter(|_| subscriber.is_none());
        // A sleep looks at the clock when it is made; this one only where it is waited for.
        let idle_passed = async { tokio::time::sleep(idle.unwrap_or_default()).await };
        let Socket { reader, writer, parser, outgoing, .. } = &mut self.socket;
        let mut space = parser.space();

        tokio::select! {
            biased;
            sent = outgoing.pump(writer), if is_sending => sent.map(|()| Event::Sent),
            read = reader.read_buf(&mut space) => {
                read.map(Event::Read).map_err(|_| Ending::Network)
            }
            // Before the messages, so that many of them do not keep it from its turn.
            () = self.desk.login.due(), if subscriber.is_some() => Ok(Event::Recheck),
            message = self.desk.next_message(), if subscriber.is_some() => {
                Ok(Event::Message(message))
            }
            () = idle_passed, if idle.is_some() => Ok(Event::Idle),
        }
    }

    /// Everything was sent.
    fn sent(&mut self) -> Result<(), Ending> {
        let sent = self.socket.outgoing.take_sent();

        self.server.totals.sent.fetch_add(sent, Ordering::Relaxed);
        self.client.numbers.sent.fetch_add(sent, Ordering::Relaxed);
        self.client.numbers.unsent_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Puts the messages that have arrived before the replies to what runs next. So the end of a
    /// subscription does not overtake a message that was counted as received.
    fn deliver_waiting(&mut self) -> Result<(), Ending> {
        while let Some(message) = self.desk.subscriber.as_ref().and_then(Subscriber::try_next) {
            self.message(&message)?;
        }
        Ok(())
    }

    /// Puts a message of a channel behind the replies.
    fn message(&mut self, message: &raingauge_objects::Message) -> Result<(), Ending> {
        let result = self.socket.push_message(message, &mut self.replies);
        if result == Err(Ending::Output) {
            self.note_overrun();
        }
        result
    }

    /// Runs all commands that are complete now.
    async fn received(&mut self, len: usize) -> Result<(), Ending> {
        self.socket.state.is_busy.store(true, Ordering::Release);
        self.server.totals.received.fetch_add(len as u64, Ordering::Relaxed);
        self.client.numbers.received.fetch_add(len as u64, Ordering::Relaxed);
        self.renew_login()?;

        loop {
            let was_trusted = self.socket.parser.limits().trusted;
            let mut drain = std::mem::take(&mut self.drain);
            let parsed = self.socket.parser.drain(&mut drain);
            let is_browser = browser::cut(&mut drain);
            let is_empty = drain.is_empty();

            self.socket.incoming.set(drain.received_len() + self.socket.parser.pending_len());
            let ran = if is_empty { Ok(()) } else { self.run_drain(&drain).await };
            drain.clear();
            self.socket.incoming.set(self.socket.parser.pending_len());
            self.drain = drain;
            ran?;

            if is_browser {
                return Err(Ending::Protocol);
            }
            if let Err(failure) = parsed.and_then(|()| self.socket.incoming.check()) {
                self.server.usage.failure(failure.code());
                self.replies.fail(&failure);
                self.socket.outgoing.push(self.replies.take(), 0);
                return Err(Ending::Protocol);
            }
            // What arrived while commands waited is parsed only now.
            if is_empty || was_trusted && self.socket.parser.pending_len() == 0 {
                return Ok(());
            }
        }
    }

    /// Runs the commands of a drain, in their order.
    async fn run_drain(&mut self, drain: &Drain) -> Result<(), Ending> {
        let began = Instant::now();
        let waiting = self.socket.outgoing.len();
        let mut next = 0;

        self.client.numbers.active_ms.store(self.server.clock.now_ms(), Ordering::Relaxed);
        self.client.numbers.commands.fetch_add(drain.len() as u64, Ordering::Relaxed);
        self.observer.drain(drain, self.session.database());
        self.note_pipeline(drain);
        while next < drain.len() {
            self.wait_while_paused(drain, next).await?;
            self.deliver_waiting()?;

            next = match self.desk.reply_mode {
                ReplyMode::SkipNext => {
                    let mut single = Drain::new();
                    single.push(drain.get(next).arguments);
                    self.desk.reply_mode = ReplyMode::Skipping;
                    self.step(&single, 0).await?;
                    self.desk.reply_mode = self.desk.reply_mode.after_one();
                    next + 1
                }
                _ => self.step(drain, next).await?,
            };

            self.make_room().await?;
            if let Some(ending) = self.desk.ending {
                return Err(ending);
            }
        }

        self.publish();
        self.client.note_last(drain.get(drain.len() - 1));
        let written = self.socket.outgoing.len().saturating_sub(waiting);
        self.observer.replied(drain, began, Instant::now(), written, &self.desk.name);
        Ok(())
    }

    /// Measures a sample of the drains.
    fn note_pipeline(&mut self, drain: &Drain) {
        if self.drains.is_multiple_of(PIPELINE_SAMPLE) {
            metrics::histogram!("raingauge_resp_pipeline_commands").record(drain.len() as f64);
        }
        self.drains = self.drains.wrapping_add(1);
    }

    /// Runs commands from an index on, and returns the index of the first that did not run.
    async fn step(&mut self, drain: &Drain, next: usize) -> Result<usize, Ending> {
        let command = drain.get(next);

        if let Some(failure) = self.refusal(&command) {
            self.refuse(&command, &failure);
            self.push(0);
            return Ok(next + 1);
        }

        let stays = command.check().is_ok_and(|spec| matches!(spec.id, Id::Quit | Id::Reset));
        let room = match command.spec() {
            Some(spec) if stays || !self.session.in_multi() => spec.room,
            _ => Room::Objects,
        };

        match room {
            // Alone: messages are sent while it waits, and must not overtake what later commands
            // say about subscriptions.
            Room::Objects if self.desk.subscriber.is_some() && is_blocking(command) => {
                let mut single = Drain::new();
                single.push(command.arguments);
                Ok(next + self.run_objects(&single, 0).await?)
            }

            Room::Objects => self.run_objects(drain, next).await,

            Room::Rain => {
                let next = match &self.server.rain {
                    Some(rain) => {
                        let caller = self.desk.login.user();
                        let gate = &self.session.gate;
                        let next = rain.run(caller, gate, drain, next, &mut self.replies).await;
                        self.hush();
                        next
                    }
                    None => {
                        let failure = Failure::text("ERR this process has no counts");
                        self.refuse(&command, &failure);
                        next + 1
                    }
                };
                self.push(0);
                Ok(next)
            }

            Room::Door => {
                self.run_own(command).await?;
                Ok(next + 1)
            }
        }
    }

    /// Lets the service of objects run commands, and queues the replies with what they wait for.
    async fn run_objects(&mut self, drain: &Drain, from: usize) -> Result<usize, Ending> {
        let began = Instant::now();
        let objects = Arc::clone(&self.server.objects);
        self.session.touches = !self.client.numbers.no_touch.load(Ordering::Relaxed);
        let blocks = is_blocking(drain.get(from));
        let secret = blocks.then(|| self.desk.login.secret()).flatten();
        let protocol = self.desk.protocol;
        // A blocking command of a client that listens runs alone, and needs no subscriber.
        let subscriber = self.desk.subscriber.take_if(|_| blocks);
        let ran = {
            let run =
                objects.run(&mut self.session, &mut self.desk, drain, from, &mut self.replies);
            tokio::pin!(run);

            let at_once = tokio::select! {
                biased;
                ran = &mut run => Some(ran),
                () = std::future::ready(()) => None,
            };
            match at_once {
                Some(ran) => Ok(ran),
                None => {
                    self.client.note_last(drain.get(from));
                    self.client.numbers.blocked.store(blocks, Ordering::Relaxed);

                    let serving = async {
                        match &subscriber {
                            Some(all) => self.socket.serve_listening(run, all, protocol).await,
                            None => self.socket.serve_during(run, blocks).await,
                        }
                    };
                    let ran = while_held(&self.server.tokens, secret, serving).await;

                    self.client.numbers.blocked.store(false, Ordering::Relaxed);
                    self.socket.state.is_busy.store(true, Ordering::Release);
                    ran
                }
            }
        };

        if subscriber.is_some() {
            self.desk.subscriber = subscriber;
        }
        if ran == Err(Ending::Output) {
            self.note_overrun();
        }
        let Ran { next, segments, waited } = ran?;
        self.hush();

        let mut taken = 0;
        for segment in segments {
            let buffers = self.replies.take_first(segment.end - taken);
            taken = segment.end;
            self.socket.outgoing.push(buffers, segment.stamp);
        }
        self.push(0);

        let now_s = || self.server.clock.now_s();
        let elapsed = began.elapsed().saturating_sub(waited);
        self.server.slowlog.note_run(drain, from..next, &self.client, now_s, elapsed);
        Ok(next)
    }

    /// Runs a command of the door.
    async fn run_own(&mut self, command: Command<'_>) -> Result<(), Ending> {
        let began = Instant::now();
        self.publish();
        let shows_itself = command.spec().is_some_and(|spec| spec.container() == Some("client"));
        if shows_itself {
            self.client.note_last(command);
        }

        // What commands wait for is waited for here, once it is known that the caller may run them.
        if let Some(mut wait) = commands::prepare(&mut self.desk, &self.session, command)
            && self.session.gate.admit(&command).is_ok()
        {
            self.socket.serve_during(wait.as_mut(), false).await?;
        }

        let was_silent = self.desk.reply_mode.is_silent();
        let mark = self.replies.mark();
        let gate = &self.session.gate;
        let result = commands::run(&mut self.desk, command, gate, &mut self.replies);
        let failed = result.is_err();
        if let Err(failure) = result {
            self.replies.roll_back(mark);
            self.refuse(&command, &failure);
        }
        // Confirmations of subscriptions are messages, which are never held back.
        let is_message = command.spec().is_some_and(|spec| spec.group == "pubsub");
        if was_silent && self.desk.reply_mode.is_silent() && !is_message {
            self.replies.roll_back(mark);
        }

        self.client.note_last(command);
        if let Some(spec) = command.spec() {
            let elapsed = began.elapsed();
            self.server.usage.ran(spec, micros(elapsed), failed);
            if spec.id == Id::Reset && !failed {
                self.session.reset();
            }
            if !spec.flags.has(Flags::SKIP_SLOWLOG) {
                self.note_duration(command, micros(elapsed));
            }
        }

        self.apply_login();
        let shows_keys = commands::shows_keys(command);
        self.push(if shows_keys { self.server.objects.stats().submitted } else { 0 });
        Ok(())
    }

    /// Why a command cannot run on this connection as it is: without a login, or between messages.
    fn refusal(&self, command: &Command<'_>) -> Option<Failure> {
        let spec = command.check().ok()?;

        if !self.desk.login.is_done() && !spec.flags.has(Flags::NO_AUTH) {
            return Some(Failure::text("NOAUTH Authentication required."));
        }
        if self.desk.only_listens() && !commands::listening::is_allowed(spec) {
            return Some(Failure::owned(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                spec.name
            )));
        }

        None
    }

    /// Replies with a failure, and counts it.
    fn refuse(&mut self, command: &Command<'_>, failure: &Failure) {
        self.server.usage.failure(failure.code());
        if let Some(spec) = command.spec() {
            self.desk.note_refusal(spec, failure);
        }
        if !self.desk.reply_mode.is_silent() {
            self.replies.fail(failure);
        }
    }

    /// Drops replies that `CLIENT REPLY` does not want.
    fn hush(&mut self) {
        if self.desk.reply_mode.is_silent() {
            self.replies.take();
        }
    }

    /// Queues what was written to the replies.
    fn push(&mut self, stamp: u64) {
        if !self.replies.is_empty() {
            self.socket.outgoing.push(self.replies.take(), stamp);
        }
    }

    /// Lets the client read when too many replies wait for it. One that does not is disconnected.
    async fn make_room(&mut self) -> Result<(), Ending> {
        let own_max = self.server.settings.output_bytes_max;
        let len = self.socket.outgoing.len();
        let is_full = len > RESP_OUTPUT_ALWAYS && self.server.is_output_full();
        if len <= own_max && !is_full {
            return Ok(());
        }

        self.publish();
        let len_max = if is_full { RESP_OUTPUT_ALWAYS } else { own_max / 2 };
        let result = self.socket.make_room(len_max, own_max).await;
        if result == Err(Ending::Output) {
            self.note_overrun();
        }
        result
    }

    fn note_overrun(&self) {
        self.server.totals.overrun_connections.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            client = self.client.id,
            address = %self.client.address,
            bytes = self.socket.outgoing.len(),
            "a client was disconnected, since it does not read its replies"
        );
    }

    /// Waits while `CLIENT PAUSE` holds commands back.
    async fn wait_while_paused(&mut self, drain: &Drain, next: usize) -> Result<(), Ending> {
        loop {
            let clients = Arc::clone(&self.server.clients);
            if !clients.is_paused() {
                return Ok(());
            }

            let resumed = clients.resumed();
            tokio::pin!(resumed);
            let now_ms = self.server.clock.now_ms();
            let writes = || {
                (next..drain.len())
                    .filter_map(|index| drain.get(index).spec())
                    .any(|spec: &Spec| waits_with_writes(spec))
            };

            let Some(wait_ms) = clients.wait_ms(now_ms, writes) else {
                return Ok(());
            };
            // The commands that end a pause go on through it.
            let spec = drain.get(next).spec();
            if spec.is_some_and(|spec| spec.container() == Some("client")) {
                return Ok(());
            }

            self.client.note_last(drain.get(next));
            self.client.numbers.blocked.store(true, Ordering::Relaxed);
            let is_sending = !self.socket.outgoing.is_empty();
            tokio::select! {
                biased;
                sent = self.socket.outgoing.pump(&self.socket.writer), if is_sending => sent?,
                () = &mut resumed => {}
                () = tokio::time::sleep(Duration::from_millis(wait_ms.unsigned_abs())) => {}
            }
            self.client.numbers.blocked.store(false, Ordering::Relaxed);
        }
    }

    fn note_duration(&self, command: Command<'_>, duration_us: u64) {
        if self.server.slowlog.is_slow(duration_us) {
            let at_s = self.server.clock.now_s();
            self.server.slowlog.note(command.arguments, &self.client, at_s, duration_us);
        }
    }

    /// Looks up from time to time whether the token of the connection still holds. One that was
    /// withdrawn ends a connection that listens, and the open transaction of another.
    fn renew_login(&mut self) -> Result<(), Ending> {
        if self.desk.login.renew() {
            self.apply_login();
        }
        if !self.desk.login.is_done() {
            // Inside of a transaction, AUTH would be queued for an EXEC that is refused.
            self.session.discard();
        }
        let may_listen = self.desk.login.is_done() || self.desk.subscriber.is_none();
        if may_listen { Ok(()) } else { Err(Ending::Login) }
    }

    /// Lets the parser and the service know what the caller may do.
    fn apply_login(&mut self) {
        let rights = self.desk.login.rights();
        if self.session.gate.rights != rights || self.session.gate.slots.is_none() {
            self.session.gate = Gate { rights, slots: self.server.slots.clone() };
        }

        self.socket.parser.set_limits(ParserLimits {
            trusted: self.desk.login.is_done(),
            bulk_bytes_max: self.server.parameters.bulk_bytes_max(),
        });
    }

    /// Shows the state of the connection to others.
    fn publish(&self) {
        let numbers = &self.client.numbers;
        let session = &self.session;
        let queued = if session.in_multi() { session.queued() as i64 } else { -1 };

        numbers.database.store(session.database().into(), Ordering::Relaxed);
        numbers.queued.store(queued, Ordering::Relaxed);
        numbers.watched.store(session.watched(), Ordering::Relaxed);
        numbers.unsent_bytes.store(self.socket.outgoing.len(), Ordering::Relaxed);
    }
}

fn is_blocking(command: Command<'_>) -> bool {
    command.spec().is_some_and(|spec| spec.flags.has(Flags::BLOCKING))
}

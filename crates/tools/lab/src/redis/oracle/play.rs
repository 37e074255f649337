//! Plays the steps of a case on two servers, and compares every reply.

use super::rules::{self, Rule};
use super::state;
use super::steps::{CONNECTIONS, Disturbance, Step, Words};
use anyhow::{Context, Result};
use raingauge_resp_client::{Address, Connection, Reply, command};
use std::time::Duration;

/// Longer than a key needs that expires in a millisecond.
const LAPSE: Duration = Duration::from_millis(4);
/// Rounds of a walk after which it counts as endless.
const ROUNDS_MAX: usize = 100_000;

/// Disturbs the server under test, and returns its address from then on.
pub type Disturb<'a> = dyn FnMut(Disturbance) -> Result<Address> + 'a;

/// The first difference of a case.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// Which step of the case.
    pub step: usize,
    pub command: Words,
    pub expected: String,
    pub actual: String,
}

/// The two servers: the first one is right.
pub struct Table<'a> {
    addresses: [Address; 2],
    connections: Vec<[Connection; 2]>,
    protocols: [u8; CONNECTIONS],
    /// Commands that wait for EXEC, by connection.
    queues: Vec<Option<Vec<Words>>>,
    disturb: &'a mut Disturb<'a>,
    compared: u64,
    /// Whether the servers have come apart in a way that is known, so that the case ends.
    is_over: bool,
}

impl<'a> Table<'a> {
    /// Connects to both servers, whose objects are removed by every case.
    pub fn new(expected: &Address, actual: &Address, disturb: &'a mut Disturb<'a>) -> Result<Self> {
        let addresses = [expected.clone(), actual.clone()];
        let protocols = std::array::from_fn(|place| if place == 0 { 2 } else { 3 });
        let mut table = Self {
            addresses,
            connections: Vec::new(),
            protocols,
            queues: vec![None; CONNECTIONS],
            disturb,
            compared: 0,
            is_over: false,
        };
        table.reconnect()?;
        Ok(table)
    }

    /// Replies that were compared so far.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    fn open(&self, connection: usize) -> Result<[Connection; 2]> {
        let protocol = self.protocols[connection].to_string();
        let open = |address: &Address| {
            let mut opened = Connection::open(address)?;
            opened.done(&[b"HELLO", protocol.as_bytes()])?;
            anyhow::Ok(opened)
        };
        Ok([open(&self.addresses[0])?, open(&self.addresses[1])?])
    }

    fn reconnect(&mut self) -> Result<()> {
        self.connections = (0..CONNECTIONS).map(|place| self.open(place)).collect::<Result<_>>()?;
        self.queues = vec![None; CONNECTIONS];
        Ok(())
    }

    /// Plays a case on empty servers. Returns the first difference.
    pub fn play(&mut self, steps: &[Step]) -> Result<Option<Mismatch>> {
        self.protocols = std::array::from_fn(|place| if place == 0 { 2 } else { 3 });
        self.is_over = false;
        self.reconnect()?;
        for connection in &mut self.connections[0] {
            connection.done(&[b"FLUSHALL"])?;
        }

        for (place, step) in steps.iter().enumerate() {
            let found = self.step(step).with_context(|| format!("step {place}: {step:?}"))?;
            if let Some((command, expected, actual)) = found {
                return Ok(Some(Mismatch { step: place, command, expected, actual }));
            }
            if self.is_over {
                break;
            }
        }
        Ok(None)
    }

    fn step(&mut self, step: &Step) -> Result<Option<(Words, String, String)>> {
        match step {
            Step::Batch { connection, commands, cuts } => self.batch(*connection, commands, cuts),
            Step::Chance { connection, words } => self.chance(*connection, words),
            Step::Walk { connection, words } => self.walk(*connection, words),
            Step::Lapse { connection, key } => self.lapse(*connection, key),
            Step::Reconnect { connection, protocol } => {
                self.protocols[*connection] = *protocol;
                self.connections[*connection] = self.open(*connection)?;
                self.queues[*connection] = None;
                Ok(None)
            }
            Step::Compare => self.compare(),
            Step::Disturb(disturbance) => {
                self.addresses[1] = (self.disturb)(*disturbance)?;
                if *disturbance == Disturbance::Reopen {
                    self.reconnect()?;
                }
                Ok(None)
            }
        }
    }

    fn batch(
        &mut self,
        connection: usize,
        commands: &[Words],
        cuts: &[usize],
    ) -> Result<Option<(Words, String, String)>> {
        let mut bytes = Vec::new();
        for words in commands {
            command(&mut bytes, &borrowed(words));
        }

        let pair = &mut self.connections[connection];
        for one in pair.iter_mut() {
            let mut start = 0;
            for cut in cuts.iter().map(|cut| (*cut).min(bytes.len())) {
                one.send(&bytes[start..cut.max(start)])?;
                start = cut.max(start);
            }
            one.send(&bytes[start..])?;
        }

        let mut found = None;
        for words in commands {
            let [expected, actual] = &mut self.connections[connection];
            let expected = expected.reply()?;
            let actual = actual.reply()?;
            self.compared += 1;
            let is_same = self.judge(connection, words, &expected, &actual);
            // The other replies are read all the same, so that the connections can be used again.
            if !is_same && found.is_none() {
                found = Some(difference(words, &expected, &actual));
            }
        }
        Ok(found)
    }

    /// Compares the replies to a command, with those of a transaction by the rule of each.
    fn judge(
        &mut self,
        connection: usize,
        words: &Words,
        expected: &Reply,
        actual: &Reply,
    ) -> bool {
        let queue = &mut self.queues[connection];
        let is = |name: &str| words[0].eq_ignore_ascii_case(name.as_bytes());
        if is("MULTI") && expected.error().is_none() {
            *queue = Some(Vec::new());
            return expected == actual;
        }
        if *expected == Reply::Simple(b"QUEUED".to_vec()) {
            if let Some(queue) = queue {
                queue.push(words.clone());
            }
            return expected == actual;
        }
        if is("DISCARD") && expected.error().is_none() {
            *queue = None;
        }
        if !is("EXEC") || expected.error().is_some_and(|text| !text.starts_with("EXECABORT")) {
            return is_same(&mut self.is_over, rules::of(words), expected, actual);
        }

        let queued = queue.take().unwrap_or_default();
        match (expected, actual) {
            (Reply::Array(left), Reply::Array(right)) => {
                left.len() == right.len()
                    && left.len() == queued.len()
                    && left.iter().zip(right).zip(&queued).all(|((left, right), words)| {
                        is_same(&mut self.is_over, rules::of(words), left, right)
                    })
            }
            _ => is_same(&mut self.is_over, rules::of(words), expected, actual),
        }
    }

    /// Whether commands of the connection are queued, so that their replies do not come at once.
    fn is_queueing(&self, connection: usize) -> bool {
        self.queues[connection].is_some()
    }

    fn both(&mut self, connection: usize, words: &[&[u8]]) -> Result<[Reply; 2]> {
        let [expected, actual] = &mut self.connections[connection];
        Ok([expected.call(words)?, actual.call(words)?])
    }

    fn chance(
        &mut self,
        connection: usize,
        words: &Words,
    ) -> Result<Option<(Words, String, String)>> {
        if self.is_queueing(connection) {
            return Ok(None);
        }
        let name = words[0].to_ascii_uppercase();
        let listing: Vec<&[u8]> = match name.as_slice() {
            b"RANDOMKEY" => vec![b"KEYS", b"*"],
            b"HRANDFIELD" => vec![b"HGETALL", &words[1]],
            b"ZRANDMEMBER" => vec![b"ZRANGE", &words[1], b"0", b"-1", b"WITHSCORES"],
            _ => vec![b"SMEMBERS", &words[1]],
        };

        let [all, _] = self.both(connection, &listing)?;
        let [expected, actual] = self.both(connection, &borrowed(words))?;
        self.compared += 1;
        let is_pairs = matches!(name.as_slice(), b"HRANDFIELD" | b"ZRANDMEMBER");
        if !super::chance::is_possible(&all, is_pairs, words, &expected, &actual) {
            return Ok(Some(difference(words, &expected, &actual)));
        }

        if name == b"SPOP" && expected != actual {
            // The server under test gets the choice of the other one.
            let [_, under_test] = &mut self.connections[connection];
            for (verb, reply) in [(&b"SADD"[..], &actual), (b"SREM", &expected)] {
                let members = super::chance::members(reply);
                if !members.is_empty() {
                    let mut words = vec![verb, &words[1]];
                    words.extend(members);
                    under_test.done(&words)?;
                }
            }
        }
        Ok(None)
    }

    fn walk(
        &mut self,
        connection: usize,
        words: &Words,
    ) -> Result<Option<(Words, String, String)>> {
        if self.is_queueing(connection) {
            return Ok(None);
        }
        let place = words.iter().skip(1).position(|word| word == b"0").unwrap_or(0) + 1;
        let [expected, actual] = &mut self.connections[connection];
        let expected = followed(expected, words, place)?;
        let actual = followed(actual, words, place)?;
        self.compared += 1;
        Ok((expected != actual)
            .then(|| (words.clone(), format!("{expected:?}"), format!("{actual:?}"))))
    }

    fn lapse(&mut self, connection: usize, key: &[u8]) -> Result<Option<(Words, String, String)>> {
        if self.is_queueing(connection) {
            return Ok(None);
        }
        let words = vec![b"PEXPIRE".to_vec(), key.to_vec(), b"1".to_vec()];
        let [expected, actual] = self.both(connection, &borrowed(&words))?;
        std::thread::sleep(LAPSE);
        // Redis counts an expired key until it is asked for, or found by chance.
        self.both(connection, &[b"EXISTS", key])?;
        self.compared += 1;
        Ok((expected != actual).then(|| difference(&words, &expected, &actual)))
    }

    fn compare(&mut self) -> Result<Option<(Words, String, String)>> {
        let expected = state::of(&self.addresses[0])?;
        let actual = state::of(&self.addresses[1])?;
        self.compared += expected.keys.len() as u64;
        let different = state::difference(&expected, &actual);
        Ok(different.map(|(key, left, right)| (vec![b"(state)".to_vec(), key], left, right)))
    }
}

/// Whether two replies are the same, or differ in a way that is known; nothing is compared after
/// such a difference.
fn is_same(is_over: &mut bool, rule: Rule, expected: &Reply, actual: &Reply) -> bool {
    *is_over |= rules::is_known(rule, expected, actual) && expected != actual;
    *is_over || rules::is_same(rule, expected, actual)
}

/// The replies of a walk from its first cursor to its last: what it found, each thing once.
fn followed(connection: &mut Connection, words: &Words, place: usize) -> Result<Vec<String>> {
    let width = if matches!(words[0].as_slice(), b"HSCAN" | b"ZSCAN") { 2 } else { 1 };
    let has_scores = words[0] == b"ZSCAN";
    let mut words = words.clone();
    let mut found = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let reply = connection.call(&borrowed(&words))?;
        let Some([cursor, page]) = reply.elements() else {
            return Ok(vec![format!("{reply:?}")]);
        };

        let all = page.elements().unwrap_or_default().chunks(width);
        found.extend(all.map(|group| match group {
            [member, score] if has_scores => format!("{member:?} {}", rules::plain_score(score)),
            group => format!("{group:?}"),
        }));
        words[place] = cursor.bytes().unwrap_or_default().to_vec();
        if words[place] == b"0" {
            found.sort_unstable();
            found.dedup();
            return Ok(found);
        }
    }
    anyhow::bail!("a walk without end: {words:?}")
}

fn difference(words: &Words, expected: &Reply, actual: &Reply) -> (Words, String, String) {
    (words.clone(), format!("{expected:?}"), format!("{actual:?}"))
}

pub fn borrowed(words: &Words) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

/// How a command is compared, for messages.
pub fn rule_of(mismatch: &Mismatch) -> Rule {
    rules::of(&mismatch.command)
}

//! Turns at random, each executed by books under test and then by their twin in memory.

use crate::books::{Error, PointBooks};
use crate::files::simulated::Random;
use raingauge_memory::Books as Twin;
use raingauge_points::{
    Answer, Body, BudgetId, Command, Desk, Footprint, Key, Programmes, Turn, WalletId,
};
use raingauge_ports::contract::books::{NOW_MS, award, burn, command, programmes, wait, wallet};
use raingauge_ports::points::{BookReader, Books, Head};
use std::sync::Arc;

const MEMBERS: [&str; 6] = ["ann", "bob", "bobby", "eve", "kim", "lee"];
const HOUR_MS: i64 = 3_600_000;

/// What was executed so far.
pub struct Scene {
    pub random: Random,
    pub twin: Twin,
    programmes: Programmes,
    now_ms: i64,
    /// Keys of commands, of which awards and holds may be named again.
    keys: Vec<String>,
    /// Commands without an answer.
    unanswered: Vec<Command>,
    /// The turn that was decided last.
    last: Option<Turn>,
    /// The position of the last turn with entries.
    durable_position: u64,
    /// The last position of a turn without entries. A write of it that fails may have written all
    /// of it, which is right: what lies before it has had its effects.
    noted_position: u64,
}

impl Scene {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            twin: Twin::new(1),
            programmes: programmes(),
            now_ms: NOW_MS,
            keys: Vec::new(),
            unanswered: Vec::new(),
            last: None,
            durable_position: 0,
            noted_position: 0,
        }
    }

    /// Where the books have to be.
    pub fn head(&self) -> Head {
        self.twin.head(0).expect("a head")
    }

    pub fn is_answered(&self) -> bool {
        self.unanswered.is_empty()
    }

    fn member(&mut self) -> &'static str {
        MEMBERS[self.random.below(MEMBERS.len())]
    }

    fn any_key(&mut self) -> Arc<str> {
        let count = self.keys.len().max(1);
        let place = self.random.below(count);
        Arc::from(self.keys.get(place).map_or("none", String::as_str))
    }

    fn command(&mut self) -> Command {
        let key = format!("key-{}", self.keys.len());
        let member = self.member();
        let points = 1 + self.random.below(500) as i64;
        let mut command = match self.random.below(12) {
            0..5 => award(member, &key, points),
            5..7 => burn(member, &key, points),
            7 => command(member, &key, Body::Transfer { to: Arc::from(self.member()), points }),
            8 => {
                let hold = Body::Hold { points: Some(points), until_ms: None, reward: None };
                command(member, &key, hold)
            }
            9 => {
                let hold = self.any_key();
                command(member, &key, Body::Capture { hold, points: None })
            }
            10 => {
                let of = Some(self.any_key());
                command(
                    member,
                    &key,
                    Body::Reverse { key: of, source: None, amount: None, points: None },
                )
            }
            _ => command(member, &key, Body::Adjust { points, expires_on: None }),
        };

        if self.random.chance(30) {
            command.reference = Some(self.any_key());
        }
        if let Body::Award(award) = &mut command.body
            && self.random.chance(30)
        {
            award.budget = Some(Arc::from("campaign"));
        }
        self.keys.push(key);
        command
    }

    fn commands(&mut self) -> Vec<Command> {
        let mut commands: Vec<Command> =
            (0..=self.random.below(4)).map(|_| self.command()).collect();
        commands.append(&mut self.unanswered);
        commands
    }

    /// Executes new commands, and those that were not answered before, in one turn. Sometimes
    /// months pass before, in which points expire.
    pub fn turn(&mut self, books: &impl Books) -> Result<(), Error> {
        self.now_ms += match self.random.below(10) {
            0 => 40 * 24 * HOUR_MS,
            1..4 => HOUR_MS,
            _ => 0,
        };
        let commands = self.commands();
        self.execute(books, commands)
    }

    /// Executes commands that were not answered.
    pub fn repeat(&mut self, books: &impl Books) -> Result<(), Error> {
        let commands = std::mem::take(&mut self.unanswered);
        self.execute(books, commands)
    }

    fn execute(&mut self, books: &impl Books, commands: Vec<Command>) -> Result<(), Error> {
        let mut footprint = Footprint::of(&commands, &self.programmes, self.now_ms);
        let swept = wallet(self.member());
        footprint.wallet(swept.clone());
        let certain = self.head().position;
        let mut answers = Vec::new();
        self.last = None;

        let done = books.turn(&[0], &footprint, &mut |heads, snapshot| {
            let mut desk = Desk::new(&self.programmes, snapshot, self.now_ms);
            answers = commands.iter().map(|command| desk.execute(command)).collect();
            desk.settle(&swept);
            let mut turn = desk.finish();
            // A power cut may have taken a position back that moved alone.
            let position = heads[0].position.max(certain);
            let position = position + commands.len() as u64;
            turn.position = Some(position);
            if turn.entries.is_empty() {
                self.noted_position = position;
            }
            self.last = Some(turn.clone());
            turn
        });

        match done {
            Ok(heads) => {
                self.follow();
                assert_eq!(heads, [self.head()]);
                self.check_answers(&commands, &answers);
                Ok(())
            }
            Err(error) => {
                self.unanswered = commands;
                Err(error)
            }
        }
    }

    /// The twin takes the last turn as well.
    fn follow(&mut self) {
        if let Some(turn) = self.last.take() {
            if !turn.entries.is_empty() {
                self.durable_position = turn.position.expect("each turn has one");
            }
            let copied = self.twin.turn(&[0], &Footprint::default(), &mut |_, _| turn.clone());
            copied.expect("the twin takes it");
        }
    }

    /// Commands that are answered with an entry have it under their keys.
    fn check_answers(&self, commands: &[Command], answers: &[Answer]) {
        for (command, answer) in commands.iter().zip(answers) {
            let entry = match answer {
                Answer::Done(entries) => &entries[0],
                Answer::Replayed(entry) | Answer::Refused { entry, .. } => entry,
                Answer::Invalid(_) => continue,
            };
            let found = wait(self.twin.by_key(key_of(command))).expect("read");
            assert_eq!(found.as_ref(), Some(entry));
        }
    }

    /// Books that were opened again have what was answered, and of the turn whose answer was lost
    /// all or nothing.
    pub fn take_stock(&mut self, books: &PointBooks) {
        let found = books.head(0).expect("a head").sequence;
        let certain = self.head().sequence;
        let lost = self.last.as_ref().map_or(0, |turn| turn.entries.len() as u64);
        assert!(found == certain || found == certain + lost, "{found} entries, not {certain}");
        if found > certain {
            self.follow();
        }
        self.last = None;
        same_content(books, self);

        // A power cut may take a position back that moved alone, but never behind an entry.
        let position = books.head(0).expect("a head").position;
        let highest = self.head().position.max(self.noted_position);
        let lowest = self.durable_position;
        assert!((lowest..=highest).contains(&position), "{position}, not {lowest}..={highest}");
    }

    /// A turn that the books have refused is not in them.
    pub fn forget_last(&mut self) {
        self.last = None;
    }

    /// The position moved alone.
    pub fn note_position(&self, position: u64) {
        let moved = |_: &[Head], _| Turn { position: Some(position), ..Turn::default() };
        self.twin.turn(&[0], &Footprint::default(), &mut { moved }).expect("it moves");
    }
}

fn key_of(command: &Command) -> Key {
    Key::of(&command.programme, &command.source, &command.key)
}

/// Books hold what their twin holds. Their position is not compared: see [`Scene::take_stock`].
pub fn same_content(books: &PointBooks, scene: &Scene) {
    let inner = &books.inner;
    let twin = &scene.twin;
    let found = books.head(0).expect("a head");
    let expected = scene.head();
    assert_eq!(Head { position: 0, ..found }, Head { position: 0, ..expected });
    assert_eq!(books.read(0, 1, usize::MAX), twin.read(0, 1, usize::MAX));
    assert_eq!(books.due(0, u32::MAX, None, 100), twin.due(0, u32::MAX, None, 100));

    for member in MEMBERS {
        let id: WalletId = wallet(member);
        let of_twin = wait(twin.wallets(vec![id.clone()])).expect("wallets").remove(0);
        let found =
            super::state::wallets(&inner.records, std::slice::from_ref(&id)).expect("a wallet");
        assert_eq!(found, [of_twin]);
        let statement = wait(twin.statement(id.clone(), None, 1_000));
        assert_eq!(inner.statement(&id, None, 1_000), statement);
    }
    for key in &scene.keys {
        let key = Key::of("shop", "", key);
        let found = super::state::entry_of_key(&*inner.records, &inner.pages, key);
        assert_eq!(found, wait(twin.by_key(key)));
    }

    let budget = BudgetId::new(&Arc::from("shop"), &Arc::from("campaign"));
    let used =
        super::state::budgets(&inner.records, std::slice::from_ref(&budget)).expect("a budget");
    assert_eq!(vec![used[0].unwrap_or(0)], wait(twin.budgets(vec![budget])).expect("budgets"));
    let totals = super::state::totals(&*inner.records, "shop");
    assert_eq!(totals, wait(twin.totals(Arc::from("shop"))));
}

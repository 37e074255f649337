//! The commands of one read.

use bytes::Bytes;

use crate::arguments::Arguments;
use crate::buffers::{Buffers, Span, u32_of};
use crate::command::{Command, Lookup};
use crate::limits;

/// Complete commands in the order of their arrival, with the bytes that they lie in.
#[derive(Default)]
pub struct Drain {
    pub(crate) buffers: Buffers,
    pub(crate) spans: Vec<Span>,
    pub(crate) commands: Vec<Entry>,
}

/// One command: its row, and which spans are its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    lookup: Lookup,
    first: u32,
    len: u32,
}

impl Drain {
    pub fn new() -> Drain {
        Drain::default()
    }

    /// Commands from their arguments.
    pub fn of(commands: &[&[&[u8]]]) -> Drain {
        let mut drain = Drain::new();

        for command in commands {
            let first = drain.spans.len();
            for argument in *command {
                drain.copy(argument);
            }
            drain.finish(first);
        }

        drain
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Bytes of all arguments, and of what tells where they are.
    pub fn bytes_len(&self) -> usize {
        self.buffers.len() + self.spans.len() * size_of::<Span>()
    }

    /// Bytes of the commands as they were received.
    pub fn received_len(&self) -> usize {
        self.buffers.len()
    }

    /// The command of an index below [`Drain::len`].
    pub fn get(&self, index: usize) -> Command<'_> {
        let entry = self.commands[index];
        let first = entry.first as usize;
        let spans = &self.spans[first..first + entry.len as usize];

        Command { lookup: entry.lookup, arguments: Arguments { buffers: &self.buffers, spans } }
    }

    pub fn commands(&self) -> impl Iterator<Item = Command<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Appends a copy of a command, which outlives the drain that it came with. Large arguments
    /// are shared.
    pub fn push(&mut self, arguments: Arguments<'_>) {
        let first = self.spans.len();

        for (index, span) in arguments.spans.iter().enumerate() {
            if span.len == Span::LARGE {
                self.share(arguments.bytes(index));
            } else {
                self.copy(arguments.at(index));
            }
        }

        self.finish(first);
    }

    /// Forgets the commands from an index on.
    pub fn truncate(&mut self, len: usize) {
        self.commands.truncate(len);
    }

    pub fn clear(&mut self) {
        self.buffers.clear();
        self.spans.clear();
        self.commands.clear();
    }

    /// Makes a command of the spans from `first` on, which lie in the buffer already.
    fn finish(&mut self, first: usize) {
        self.begin(first);

        let last = self.commands.len() - 1;
        self.commands[last].lookup = Lookup::of(self.get(last).arguments);
    }

    /// Makes a command of the spans from `first` on, which [`Drain::look_up`] finds in the table.
    pub(crate) fn begin(&mut self, first: usize) {
        let len = u32_of(self.spans.len() - first);

        self.commands.push(Entry { lookup: Lookup::Unknown, first: u32_of(first), len });
    }

    /// Finds all commands in the table.
    pub(crate) fn look_up(&mut self) {
        for index in 0..self.commands.len() {
            self.commands[index].lookup = Lookup::of(self.get(index).arguments);
        }
    }

    fn copy(&mut self, argument: &[u8]) {
        if argument.len() >= limits::RESP_LARGE_BYTES_MIN {
            return self.share(Bytes::copy_from_slice(argument));
        }

        let start = u32_of(self.buffers.shared.len());
        self.buffers.shared.extend_from_slice(argument);
        self.spans.push(Span { start, len: u32_of(argument.len()) });
    }

    fn share(&mut self, argument: Bytes) {
        self.spans.push(Span { start: u32_of(self.buffers.large.len()), len: Span::LARGE });
        self.buffers.large.push(argument);
    }
}

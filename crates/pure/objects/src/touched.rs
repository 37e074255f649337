//! Names of the entries that changed since they were last written.

use crate::Blob;

/// Remembers touched names from [`Touched::track`] on, and nothing before.
#[derive(Debug, Default)]
pub struct Touched(Option<Vec<Blob>>);

impl Touched {
    pub fn track(&mut self) {
        self.0.get_or_insert_default();
    }

    pub fn untrack(&mut self) {
        self.0 = None;
    }

    pub fn touch(&mut self, name: &[u8]) {
        if let Some(names) = &mut self.0 {
            names.push(Blob::from_slice(name));
        }
    }

    /// The names since the last call, sorted, each once.
    pub fn take(&mut self) -> Vec<Blob> {
        let Some(names) = &mut self.0 else {
            return Vec::new();
        };
        let mut names = std::mem::take(names);
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A copy of a collection is an object of its own, which has not been written yet.
impl Clone for Touched {
    fn clone(&self) -> Touched {
        Touched(None)
    }
}

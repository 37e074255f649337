//! Why a connection ends.

/// The reason for which a connection is closed, as metrics and logs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client closed it.
    Client,
    /// The client asked for it with `QUIT`.
    Quit,
    /// Another connection asked for it with `CLIENT KILL`.
    Killed,
    /// Nothing was sent for the time that the settings give.
    Idle,
    /// The client sent what is no request, or too much of one that is not finished.
    Protocol,
    /// The token of the client was withdrawn while it listened or waited.
    Login,
    /// Too many replies or messages waited for a client that did not read them.
    Output,
    /// The server stops.
    Stopping,
    /// The network failed.
    Network,
    /// The store failed, so that replies which waited for it cannot be given.
    Store,
}

impl Ending {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ending::Client => "client",
            Ending::Quit => "quit",
            Ending::Killed => "killed",
            Ending::Idle => "idle",
            Ending::Protocol => "protocol",
            Ending::Login => "login",
            Ending::Output => "output",
            Ending::Stopping => "stopping",
            Ending::Network => "network",
            Ending::Store => "store",
        }
    }
}

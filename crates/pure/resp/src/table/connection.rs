//! Commands about connections.

use super::*;

rows! {
    "connection"

    Ping "ping" -1 [FAST] [CONNECTION] Door
        [] "1.0.0" "Answers PONG, or the given text.";
    Echo "echo" 2 [LOADING STALE FAST] [CONNECTION] Door
        [] "1.0.0" "Answers the given text.";
    Hello "hello" -1 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [CONNECTION] Door
        [] "6.0.0" "Chooses the protocol, and may log in and name the connection.";
    Auth "auth" -2 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [CONNECTION] Door
        [] "1.0.0" "Logs in with a token.";
    Select "select" 2 [LOADING STALE FAST] [CONNECTION] Objects
        [] "1.0.0" "Chooses the database of the connection.";
    Quit "quit" -1 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [CONNECTION] Door
        [] "1.0.0" "Closes the connection.";
    Reset "reset" 1 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [CONNECTION] Door
        [] "6.2.0" "Puts the connection into the state of a new one.";
    Client "client" -2 [] [] Door
        [] "2.4.0" "Commands about connections.";
    ClientId "client|id" 2 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "5.0.0" "Returns the number of the connection.";
    ClientGetname "client|getname" 2 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "2.6.9" "Returns the name of the connection.";
    ClientSetname "client|setname" 3 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "2.6.9" "Names the connection.";
    ClientSetinfo "client|setinfo" 4 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "7.2.0" "Names the library and version of the client.";
    ClientList "client|list" -2 [ADMIN NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "2.4.0" "Lists open connections.";
    ClientInfo "client|info" 2 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "6.2.0" "Describes this connection.";
    ClientKill "client|kill" -3 [ADMIN NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "2.4.0" "Closes connections.";
    ClientPause "client|pause" -3 [ADMIN NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "2.9.50" "Suspends the commands of all connections.";
    ClientUnpause "client|unpause" 2 [ADMIN NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "6.2.0" "Resumes the commands of all connections.";
    ClientReply "client|reply" 3 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "3.2.0" "Turns replies on or off, or skips one.";
    ClientNoEvict "client|no-evict" 3 [ADMIN NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "7.0.0" "Keeps the connection when memory for clients runs short.";
    ClientNoTouch "client|no-touch" 3 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "7.2.0" "Keeps the commands of the connection from changing access times.";
    ClientUnblock "client|unblock" -3 [ADMIN NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "5.0.0" "Wakes a connection that waits in a blocking command.";
    ClientGetredir "client|getredir" 2 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "6.0.0" "Returns the connection that tracking messages go to.";
    ClientTrackinginfo "client|trackinginfo" 2 [NOSCRIPT LOADING STALE] [CONNECTION] Door
        [] "6.2.0" "Returns the state of client tracking.";
    ClientHelp "client|help" 2 [LOADING STALE] [CONNECTION] Door
        [] "5.0.0" "Lists the subcommands.";
}

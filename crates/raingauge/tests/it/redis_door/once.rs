//! `RAIN.ONCE`: a retry gets the first reply, and changes nothing.

use super::{Client, home};
use raingauge_resp_client::Reply;

#[test]
fn a_retry_counts_once_also_after_a_restart() {
    let home = home();
    let server = home.start();
    let mut client = Client::new(&server);
    let once = ["RAIN.ONCE", "order-7", "INCRBY", "sold", "3"];
    assert_eq!((client.integer(&once), client.integer(&once)), (3, 3));
    assert_eq!(client.integer(&["RAIN.ONCE", "order-8", "INCRBY", "sold", "3"]), 6);
    assert_eq!(client.call(&["GET", "sold"]), Reply::Bulk(b"6".to_vec()));

    client.call(&["FLUSHALL"]);
    assert_eq!(client.integer(&once), 3, "what was answered is remembered");
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(0));
    server.kill();

    let server = home.start();
    let mut client = Client::new(&server);
    assert_eq!(client.integer(&once), 3);
    assert_eq!(client.integer(&["EXISTS", "sold"]), 0);
}

//! redis-rs drives a server: HELLO 3, a pipeline of 1,500, transactions, pub/sub, values of 2 MB.
//!
//! `redis_rs HOST PORT [cluster|static]`
//!
//! Of a cluster, the node at HOST PORT serves the lower half of the slots at least; `static` says
//! that another one serves the rest.

use redis::{Commands, Connection, ConnectionLike, Pipeline, RedisResult};

fn values<C: ConnectionLike>(client: &mut C) -> RedisResult<()> {
    let large: Vec<u8> = (0..2 << 20).map(|place| place as u8).collect();
    let () = client.set("{c}large", &large)?;
    assert_eq!(client.get::<_, Vec<u8>>("{c}large")?, large);
    let () = client.pset_ex("{c}brief", "x", 100_000)?;
    assert!(client.pttl::<_, i64>("{c}brief")? > 0);
    let _: i64 = client.del("{c}hash")?;
    let _: i64 = client.hset("{c}hash", "a", 1)?;
    assert_eq!(client.hget::<_, _, i64>("{c}hash", "a")?, 1);
    let _: i64 = client.del("{c}board")?;
    let _: i64 = client.zadd("{c}board", "a", 1.5)?;
    assert_eq!(client.zscore::<_, _, f64>("{c}board", "a")?, 1.5);
    Ok(())
}

/// `query` of an ordinary connection and of a cluster's differ.
fn pipeline(query: impl FnOnce(&Pipeline) -> RedisResult<Vec<i64>>) -> RedisResult<()> {
    let mut pipeline = redis::pipe();
    pipeline.del("{c}sum");
    for number in 0..1_500_i64 {
        pipeline.cmd("INCRBY").arg("{c}sum").arg(number);
    }
    assert_eq!(query(&pipeline)?.last(), Some(&(1_499 * 1_500 / 2)));
    Ok(())
}

fn transactions(client: &redis::Client) -> RedisResult<()> {
    let () = client.get_connection()?.set("{c}balance", 0)?;
    let pay = |mut own: Connection| {
        for _ in 0..25 {
            let _: (i64,) = redis::transaction(&mut own, &["{c}balance"], |own, pipe| {
                let balance: i64 = own.get("{c}balance")?;
                pipe.set("{c}balance", balance + 1).ignore().get("{c}balance").query(own)
            })
            .expect("a transaction");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let own = client.get_connection().expect("a connection");
            scope.spawn(move || pay(own));
        }
    });
    assert_eq!(client.get_connection()?.get::<_, i64>("{c}balance")?, 100);
    Ok(())
}

fn pubsub(client: &redis::Client) -> RedisResult<()> {
    let mut listening = client.get_connection()?;
    let mut publishing = client.get_connection()?;
    let mut subscriber = listening.as_pubsub();
    subscriber.subscribe("news")?;
    assert_eq!(publishing.publish::<_, _, i64>("news", "hello")?, 1);
    assert_eq!(subscriber.get_message()?.get_payload::<String>()?, "hello");
    Ok(())
}

fn cluster(address: &str, is_static: bool) -> RedisResult<()> {
    let url = format!("redis://{address}");
    let mut cluster = redis::cluster::ClusterClient::new(vec![url.clone()])?.get_connection()?;
    values(&mut cluster)?;
    for number in 0..200 {
        let () = cluster.set(format!("key:{number}"), number)?;
    }
    for number in 0..200 {
        assert_eq!(cluster.get::<_, i64>(format!("key:{number}"))?, number);
    }
    let () = cluster.mset(&[("{user:7}name", "Ann"), ("{user:7}city", "Bonn")])?;
    let read: Vec<String> = cluster.mget(&["{user:7}name", "{user:7}city"])?;
    assert_eq!(read, ["Ann", "Bonn"]);

    // The slots of b and a are 3300 and 15495.
    let mut own = redis::Client::open(url)?.get_connection()?;
    let refused = own.mset::<_, _, ()>(&[("b", 1), ("a", 1)]).expect_err("two slots");
    assert_eq!(refused.code(), Some("CROSSSLOT"));
    if is_static {
        let moved = own.get::<_, Option<i64>>("a").expect_err("a key of the other node");
        assert_eq!(moved.redirect_node().map(|(_, slot)| slot), Some(15_495));
    }
    Ok(())
}

fn main() -> RedisResult<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let address = format!("{}:{}", arguments[1], arguments[2]);
    if let Some(mode) = arguments.get(3) {
        cluster(&address, mode == "static")?;
    }
    for protocol in ["resp2", "resp3"] {
        let client = redis::Client::open(format!("redis://{address}/?protocol={protocol}"))?;
        let mut connection = client.get_connection()?;
        if arguments.get(3).is_none() {
            values(&mut connection)?;
        }
        pipeline(|pipeline| pipeline.query(&mut connection))?;
        transactions(&client)?;
        if protocol == "resp2" {
            pubsub(&client)?;
        }
    }
    println!("redis-rs: ok");
    Ok(())
}

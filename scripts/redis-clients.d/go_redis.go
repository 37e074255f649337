// go-redis drives a server: HELLO 3, a pool, a pipeline of 1,500, transactions, pub/sub, values of 2 MB.
//
//	go_redis HOST PORT [cluster|static]
//
// Of a cluster, the node at HOST PORT serves the lower half of the slots at least; static says that another serves the rest.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var background = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(is bool, what ...any) {
	if !is {
		panic(fmt.Sprint(what...))
	}
}

func checkValues(client redis.UniversalClient) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16)
	must(client.Set(background, "{c}large", large, 0).Err())
	read, err := client.Get(background, "{c}large").Bytes()
	must(err)
	expect(bytes.Equal(read, large), "a large value")

	must(client.Set(background, "{c}brief", "x", 100*time.Second).Err())
	expect(client.PTTL(background, "{c}brief").Val() > 0, "an expiry")
	client.Del(background, "{c}hash", "{c}board")
	must(client.HSet(background, "{c}hash", "a", 1, "b", 2).Err())
	hash := client.HGetAll(background, "{c}hash").Val()
	expect(len(hash) == 2 && hash["b"] == "2", "a hash", hash)
	must(client.ZAdd(background, "{c}board", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: 2, Member: "b"}).Err())
	board := client.ZRangeWithScores(background, "{c}board", 0, -1).Val()
	expect(len(board) == 2 && board[0].Score == 1.5, "a sorted set", board)
}

func checkPipeline(client redis.UniversalClient) {
	client.Del(background, "{c}sum")
	replies, err := client.Pipelined(background, func(pipeline redis.Pipeliner) error {
		for number := int64(0); number < 1500; number++ {
			pipeline.IncrBy(background, "{c}sum", number)
		}
		return nil
	})
	must(err)
	expect(replies[1499].(*redis.IntCmd).Val() == 1499*1500/2, "a pipeline")
}

func checkTransactions(client redis.UniversalClient) {
	must(client.Set(background, "{c}balance", 0, 0).Err())
	var all sync.WaitGroup
	for payer := 0; payer < 4; payer++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for paid := 0; paid < 25; {
				err := client.Watch(background, func(tx *redis.Tx) error {
					balance, err := tx.Get(background, "{c}balance").Int()
					must(err)
					_, err = tx.TxPipelined(background, func(pipeline redis.Pipeliner) error {
						pipeline.Set(background, "{c}balance", balance+1, 0)
						return nil
					})
					return err
				}, "{c}balance")
				if err == nil {
					paid++
				} else {
					expect(err == redis.TxFailedErr, err)
				}
			}
		}()
	}
	all.Wait()
	balance, err := client.Get(background, "{c}balance").Int()
	must(err)
	expect(balance == 100, "a balance", balance)
}

func checkPubSub(client redis.UniversalClient) {
	subscriber := client.Subscribe(background, "news")
	defer subscriber.Close()
	_, err := subscriber.Receive(background)
	must(err)
	expect(client.Publish(background, "news", "hello").Val() == 1, "a publication")
	message, err := subscriber.ReceiveMessage(background)
	must(err)
	expect(message.Payload == "hello", message)
}

func checkPool(client redis.UniversalClient) {
	client.Del(background, "{c}pooled")
	var all sync.WaitGroup
	for worker := 0; worker < 64; worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for count := 0; count < 25; count++ {
				must(client.Incr(background, "{c}pooled").Err())
			}
		}()
	}
	all.Wait()
	expect(client.Get(background, "{c}pooled").Val() == "1600", "a pool")
}

func checkCluster(client redis.UniversalClient, address string, nodes int) {
	for number := 0; number < 200; number++ {
		must(client.Set(background, fmt.Sprint("key:", number), number, 0).Err())
	}
	for number := 0; number < 200; number++ {
		read, err := client.Get(background, fmt.Sprint("key:", number)).Int()
		must(err)
		expect(read == number, "a key of another slot", read)
	}
	must(client.MSet(background, "{user:7}name", "Ann", "{user:7}city", "Bonn").Err())
	read := client.MGet(background, "{user:7}name", "{user:7}city").Val()
	expect(len(read) == 2 && read[0] == "Ann" && read[1] == "Bonn", "a hash tag", read)

	var seen atomic.Int32
	must(client.(*redis.ClusterClient).ForEachMaster(background, func(context.Context, *redis.Client) error {
		seen.Add(1)
		return nil
	}))
	expect(int(seen.Load()) == nodes, "nodes", seen.Load())

	own := redis.NewClient(&redis.Options{Addr: address})
	defer own.Close()
	// The slots of b and a are 3300 and 15495.
	err := own.MSet(background, "b", 1, "a", 1).Err()
	expect(err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT "), err)
	if nodes > 1 {
		err = own.Get(background, "a").Err()
		expect(err != nil && strings.HasPrefix(err.Error(), "MOVED 15495 127.0.0.1:"), err)
	}
}

func main() {
	address := os.Args[1] + ":" + os.Args[2]
	isCluster := len(os.Args) > 3
	nodes := 1
	if isCluster && os.Args[3] == "static" {
		nodes = 2
	}
	for _, protocol := range []int{2, 3} {
		options := &redis.UniversalOptions{
			Addrs: []string{address}, Protocol: protocol, PoolSize: 8, IsClusterMode: isCluster,
		}
		client := redis.NewUniversalClient(options)
		checkValues(client)
		checkPipeline(client)
		checkTransactions(client)
		checkPubSub(client)
		checkPool(client)
		if isCluster {
			checkCluster(client, address, nodes)
		}
		must(client.Close())
	}
	fmt.Println("go-redis", redis.Version()+": ok")
}

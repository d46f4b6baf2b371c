package store_test

import (
	"fmt"

	"github.com/rondo-go/rondo/redis/store"
)

func Example() {
	s := store.New(store.Options{Databases: 1})
	defer s.Close()
	s.OnExpire = func(_ *store.DB, key []byte) { fmt.Printf("%s expires\n", key) }
	db := s.DB(0)

	s.SetNow(1000)
	db.Put([]byte("city"), store.StringValue([]byte("Rome")), store.NoDeadline)
	db.Put([]byte("visits"), store.StringValue([]byte("41")), 1500)

	visits := db.Find([]byte("visits"))
	n, _ := visits.Int()
	db.Replace(visits, store.IntValue(n+1), store.KeepDeadline)
	fmt.Printf("%s\n", db.Find([]byte("visits")).AppendTo(nil))

	it, b := db.Resize(db.Find([]byte("city")), 6)
	copy(b[4:], "!!")
	fmt.Printf("%s\n", it.Bytes())

	s.SetNow(2000)
	s.Expire(1000)
	fmt.Println(db.Len(), "key")
	// Output:
	// 42
	// Rome!!
	// visits expires
	// 1 key
}

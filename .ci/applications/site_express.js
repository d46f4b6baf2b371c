// An Express site whose sessions connect-redis keeps in a Redis server.
//
// RONDO_ADDR is the server's address, host:port. The site's port is the first line of the
// output.
const express = require("express");
const session = require("express-session");
const { createClient } = require("redis");
const RedisStore = require("connect-redis").default;

const life = 3000; // milliseconds that a session lives after a request with ?short

async function main() {
  const client = createClient({ url: `redis://${process.env.RONDO_ADDR}/2` });
  client.on("error", (err) => {
    console.error(err);
    process.exit(1);
  });
  await client.connect();
  const store = new RedisStore({ client, prefix: "site:" });

  const site = express();
  site.use(session({ store, secret: "not secret", resave: false, saveUninitialized: false, rolling: true }));
  site.get("/visit", (req, res) => {
    req.session.visits = (req.session.visits || 0) + 1;
    if ("short" in req.query) {
      req.session.cookie.maxAge = life;
    }
    res.json({ visits: req.session.visits });
  });
  // A request that only looks renews the session's life.
  site.get("/look", (req, res) => res.json({ visits: req.session.visits || 0 }));
  site.get("/login", (req, res, next) => {
    const visits = req.session.visits;
    req.session.regenerate((err) => {
      if (err) return next(err);
      req.session.visits = visits;
      res.json({ visits });
    });
  });
  site.get("/logout", (req, res, next) => {
    req.session.destroy((err) => (err ? next(err) : res.json({})));
  });
  site.get("/sessions", (req, res, next) => {
    store.length((err, length) => {
      if (err) return next(err);
      store.ids((err, ids) => {
        if (err) return next(err);
        store.all((err, all) => {
          if (err) return next(err);
          const visits = all.reduce((sum, one) => sum + one.visits, 0);
          res.json({ length, ids: ids.length, all: all.length, visits });
        });
      });
    });
  });
  site.get("/clear", (req, res, next) => {
    store.clear((err) => (err ? next(err) : res.json({})));
  });
  const server = site.listen(0, "127.0.0.1", () => console.log(server.address().port));
}

main();

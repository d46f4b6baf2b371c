// BullMQ's queues and workers on the Redis server of REDIS_URL.
//
//     node bullmq.js worker QUEUE     works until it is killed
//     node bullmq.js features         asks the workers of the queues features and limited
//     node bullmq.js produce N        adds N jobs to the queue count
//     node bullmq.js check N          wants them completed
const assert = require("assert");
const fs = require("fs");
const { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } = require("bullmq");

const { hostname, port } = new URL(process.env.REDIS_URL);
const connection = { host: hostname, port: Number(port) };
const patience = 300_000; // milliseconds that anything may take before it counts as stuck
const limit = { max: 3, duration: 300 }; // jobs in milliseconds
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// What a job does, by its name.
const jobs = {
  add: async (job) => job.data.a + job.data.b,
  big: async (job) => ({ length: job.data.text.length }),
  flaky: async (job) => {
    if (job.attemptsMade < 2) throw new Error(`attempt ${job.attemptsMade} fails`);
    return job.attemptsMade;
  },
  fails: async () => {
    throw new Error("it always fails");
  },
  hopeless: async () => {
    throw new UnrecoverableError("do not try again");
  },
  steps: async (job) => {
    for (let step = 1; step <= 3; step++) {
      await job.updateProgress(step);
      await job.log(`step ${step}`);
    }
    await job.updateData({ ...job.data, seen: true });
    return "climbed";
  },
  sum: async (job) => Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0),
  tick: async () => Date.now(),
  count: async (job) => {
    fs.writeSync(ledger, `b ${job.data.n}\n`);
    await sleep(Math.random() * 4);
    fs.writeSync(ledger, `e ${job.data.n}\n`);
  },
};
let ledger;

function work(queue) {
  if (process.env.LEDGER) ledger = fs.openSync(process.env.LEDGER, "a");
  const worker = new Worker(queue, (job) => jobs[job.name](job), {
    connection,
    concurrency: 20,
    lockDuration: 3000,
    stalledInterval: 1000,
    maxStalledCount: 1000,
    limiter: queue === "limited" ? limit : undefined,
  });
  worker.on("error", (err) => console.error(err.message)); // such as a lock lost to another
}

// eventually waits until a condition holds.
async function eventually(what, condition) {
  const end = Date.now() + patience;
  while (!(await condition())) {
    assert(Date.now() < end, `there was not: ${what}`);
    await sleep(20);
  }
}

async function results(queue, events, seen) {
  const sum = await queue.add("add", { a: 2, b: 3 });
  assert.strictEqual(await sum.waitUntilFinished(events, patience), 5);
  const text = "κόσμε".repeat(100_000);
  const big = await queue.add("big", { text });
  assert.deepStrictEqual(await big.waitUntilFinished(events, patience), { length: text.length });
  assert.strictEqual((await queue.getJob(big.id)).data.text, text);
  const steps = await queue.add("steps", {});
  assert.strictEqual(await steps.waitUntilFinished(events, patience), "climbed");
  const after = await queue.getJob(steps.id);
  assert.strictEqual(after.progress, 3);
  assert.deepStrictEqual(after.data, { seen: true });
  assert.deepStrictEqual((await queue.getJobLogs(steps.id)).logs, ["step 1", "step 2", "step 3"]);
  await eventually("events of progress", () => seen("progress", steps.id).length === 3);
  await eventually("an event of completion", () => seen("completed", steps.id).length === 1);
}

async function retries(queue, events, seen) {
  const backoff = { type: "exponential", delay: 20 };
  const flaky = await queue.add("flaky", {}, { attempts: 5, backoff });
  assert.strictEqual(await flaky.waitUntilFinished(events, patience), 2);
  const fails = await queue.add("fails", {}, { attempts: 3, backoff: { type: "fixed", delay: 20 } });
  await assert.rejects(() => fails.waitUntilFinished(events, patience), /it always fails/);
  assert.strictEqual((await queue.getJob(fails.id)).attemptsMade, 3);
  await eventually("no more retries", () => seen("retries-exhausted", fails.id).length === 1);
  const hopeless = await queue.add("hopeless", {}, { attempts: 3 });
  await assert.rejects(() => hopeless.waitUntilFinished(events, patience), /do not try again/);
  const again = await queue.getJob(fails.id);
  await again.retry("failed");
  await eventually("a failure by hand", async () => (await again.getState()) === "failed" && seen("failed", fails.id).length === 2);
  assert.deepStrictEqual((await queue.getFailed()).map((job) => job.id).sort(), [fails.id, hopeless.id].sort());
}

async function delays(queue, events, seen) {
  const begin = Date.now();
  const delayed = await queue.add("add", { a: 1, b: 1 }, { delay: 400 });
  assert.strictEqual(await delayed.waitUntilFinished(events, patience), 2);
  const { processedOn } = await queue.getJob(delayed.id);
  assert(processedOn >= begin + 400, `delayed by ${processedOn - begin} ms`);
  assert.strictEqual(seen("delayed", delayed.id).length, 1);
  const far = await queue.add("add", { a: 1, b: 2 }, { delay: 1_000_000 });
  assert.strictEqual(await far.getState(), "delayed");
  await far.promote();
  assert.strictEqual(await far.waitUntilFinished(events, patience), 3);
}

async function schedules(queue, events, seen) {
  await queue.upsertJobScheduler("often", { every: 100, limit: 4 }, { name: "tick", data: { n: 1 } });
  const ticks = async () => (await queue.getCompleted()).filter((job) => job.name === "tick");
  await eventually("four ticks", async () => (await ticks()).length === 4);
  await queue.upsertJobScheduler("nightly", { pattern: "0 3 * * *", tz: "UTC" }, { name: "tick" });
  const nightly = (await queue.getJobSchedulers()).filter((one) => one.key === "nightly");
  assert.strictEqual(nightly.length, 1);
  assert.strictEqual(new Date(nightly[0].next).getUTCHours(), 3);
  assert(await queue.removeJobScheduler("nightly"));
}

async function orders(queue, events) {
  const flow = new FlowProducer({ connection });
  const children = [1, 2, 3, 4].map((n) => ({ name: "add", queueName: queue.name, data: { a: n, b: 10 } }));
  const tree = await flow.add({ name: "sum", queueName: queue.name, data: {}, children });
  assert.strictEqual(await tree.job.waitUntilFinished(events, patience), 50);
  await flow.close();

  await queue.pause();
  const first = await queue.add("add", { a: 0, b: 1 }, { jobId: "only-once" });
  await queue.add("add", { a: 5, b: 5 }, { jobId: "only-once" });
  const low = await queue.add("add", { a: 0, b: 2 }, { priority: 10 });
  const high = await queue.add("add", { a: 0, b: 3 }, { priority: 1 });
  const one = await queue.add("add", { a: 1, b: 1 }, { deduplication: { id: "same" } });
  const same = await queue.add("add", { a: 1, b: 1 }, { deduplication: { id: "same" } });
  assert.strictEqual(one.id, same.id);
  assert.strictEqual(await queue.count(), 4);
  assert.deepStrictEqual((await queue.getPrioritized()).map((job) => job.id), [high.id, low.id]);
  await high.remove();
  await queue.resume();
  assert.strictEqual(await first.waitUntilFinished(events, patience), 1);
  assert.strictEqual(await low.waitUntilFinished(events, patience), 2);
}

async function limits() {
  const queue = new Queue("limited", { connection });
  await queue.addBulk([...Array(10).keys()].map((n) => ({ name: "tick", data: { n } })));
  await eventually("ten limited jobs", async () => (await queue.getCompletedCount()) === 10);
  const starts = (await queue.getCompleted()).map((job) => job.processedOn).sort((a, b) => a - b);
  for (let i = 0; i + limit.max < starts.length; i++) {
    // The server's clock and the workers' are read at different times.
    const between = starts[i + limit.max] - starts[i];
    assert(between > limit.duration / 3, `${limit.max + 1} jobs began within ${between} ms`);
  }
  await queue.close();
}

async function cleans(queue) {
  await eventually("an idle queue", async () => {
    const counts = await queue.getJobCounts("active", "waiting", "prioritized", "delayed");
    return Object.values(counts).every((n) => n === 0);
  });
  const removed = await queue.clean(0, 3, "completed");
  assert.strictEqual(removed.length, 3);
  await queue.trimEvents(10);
  await queue.obliterate({ force: true });
  const client = await queue.client;
  const left = (await client.keys("bull:features:*")).filter((key) => !/stalled-check|:events$|:meta$/.test(key));
  assert.deepStrictEqual(left, []);
}

async function features() {
  const queue = new Queue("features", { connection });
  const events = new QueueEvents("features", { connection });
  await events.waitUntilReady();
  const heard = [];
  for (const event of ["completed", "failed", "delayed", "progress", "retries-exhausted", "active", "waiting"]) {
    events.on(event, (told) => heard.push({ event, ...told }));
  }
  const seen = (event, jobId) => heard.filter((one) => one.event === event && one.jobId === jobId);
  const checks = [results, retries, delays, schedules, orders, limits, cleans];
  for (const check of checks) {
    try {
      await check(queue, events, seen);
    } catch (err) {
      err.message = `${check.name}: ${err.message}`;
      throw err;
    }
  }
  assert.strictEqual((await queue.getWorkers()).length, 2);
  console.log(checks.map((check) => check.name).join(", "));
  await events.close();
  await queue.close();
}

async function produce(total) {
  const queue = new Queue("count", { connection });
  for (let n = 0; n < total; n += 500) {
    const some = [...Array(Math.min(500, total - n)).keys()].map((i) => n + i);
    await queue.addBulk(some.map((n) => ({ name: "count", data: { n }, opts: { jobId: `n-${n}` } })));
  }
  await queue.close();
}

async function check(total) {
  const queue = new Queue("count", { connection });
  const want = { completed: Number(total), failed: 0, active: 0, waiting: 0, delayed: 0, paused: 0 };
  let counts;
  const settled = async () => {
    counts = await queue.getJobCounts(...Object.keys(want));
    return Object.keys(want).every((state) => counts[state] === want[state]);
  };
  await eventually("all completed", settled).catch((err) => {
    err.message += JSON.stringify(counts);
    throw err;
  });
  await queue.close();
}

const [, , command, argument] = process.argv;
const run = { worker: work, features, produce, check }[command];
Promise.resolve(run(argument)).catch((err) => {
  console.error(err);
  process.exit(1);
});

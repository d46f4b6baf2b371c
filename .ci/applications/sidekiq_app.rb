# Sidekiq's jobs, and what asks its workers, on the Redis server of REDIS_URL.
#
#   sidekiq -r ./sidekiq_app.rb -q features
#   ruby sidekiq_app.rb features        asks workers of the queue features
#   ruby sidekiq_app.rb produce N       adds N jobs to the queue count
#   ruby sidekiq_app.rb check N         wants an empty queue
require "sidekiq"
require "sidekiq/api"

PATIENCE = 300 # seconds that anything may take on a loaded machine before it counts as stuck

Redis.silence_deprecations = true if defined?(Redis) # of what Sidekiq calls

Sidekiq.options[:poll_interval_average] = 0.5
Sidekiq.configure_server { |config| config.logger.level = Logger::WARN }

# Features are the jobs that the checks ask for.
class Add
  include Sidekiq::Worker
  sidekiq_options queue: "features"

  def perform(key, a, b)
    Sidekiq.redis { |r| r.rpush(key, a.is_a?(Numeric) ? a + b : (a + b).length) }
  end
end

class Mark
  include Sidekiq::Worker
  sidekiq_options queue: "features"

  def perform(key)
    Sidekiq.redis { |r| r.rpush(key, Time.now.to_f) }
  end
end

class Flaky
  include Sidekiq::Worker
  sidekiq_options queue: "features", retry: 5
  sidekiq_retry_in { 1 }

  def perform(key, times)
    tries = Sidekiq.redis { |r| r.incr(key) }
    raise "try #{tries} fails" if tries <= times
  end
end

class Fails
  include Sidekiq::Worker
  sidekiq_options queue: "features", retry: 0
  sidekiq_retries_exhausted { |job, _| Sidekiq.redis { |r| r.set("exhausted", job["jid"]) } }

  def perform
    raise "it always fails"
  end
end

class Count
  include Sidekiq::Worker
  sidekiq_options queue: "count"
  LEDGER = ENV["LEDGER"] && File.open(ENV["LEDGER"], "a")

  def perform(n)
    # One write each, so that lines of several processes do not mix.
    LEDGER.syswrite("b #{n}\n")
    sleep(rand / 100)
    LEDGER.syswrite("e #{n}\n")
  end
end

def equal(got, want)
  raise "got #{got.inspect}, want #{want.inspect}" if got != want
end

def eventually(what)
  ends = Time.now + PATIENCE
  until yield
    raise "there was not: #{what}" if Time.now > ends
    sleep 0.05
  end
end

def ask
  Sidekiq.redis { |r| yield r }
end

def results
  Add.perform_async("sum", 2, 3)
  eventually("a sum") { ask { |r| r.lrange("sum", 0, -1) } == ["5"] }
  Add.perform_async("long", "κόσμε" * 100_000, "!")
  eventually("a length") { ask { |r| r.lrange("long", 0, -1) } == ["500001"] }
  jids = Sidekiq::Client.push_bulk("class" => Add, "args" => (0...500).map { |n| ["many", n, n] })
  equal(jids.uniq.length, 500)
  eventually("500 sums") { ask { |r| r.llen("many") } == 500 }
  equal(ask { |r| r.lrange("many", 0, -1) }.map(&:to_i).sort, (0...500).map { |n| 2 * n })
end

def retries
  Flaky.perform_async("flaky", 2)
  eventually("a job to try again") { Sidekiq::RetrySet.new.size == 1 }
  equal(Sidekiq::RetrySet.new.first.klass, "Flaky")
  eventually("three tries") { ask { |r| r.get("flaky") } == "3" }
  equal(Sidekiq::RetrySet.new.size, 0)
  jid = Fails.perform_async
  eventually("an exhausted job") { ask { |r| r.get("exhausted") } == jid }
  dead = Sidekiq::DeadSet.new
  eventually("a dead job") { dead.size == 1 }
  equal(dead.find_job(jid)["error_message"], "it always fails")
  dead.first.retry
  eventually("a job that died twice") { dead.size == 1 && Sidekiq::Stats.new.failed == 4 }
  dead.clear
end

def schedules
  before = Time.now.to_f
  Mark.perform_in(1, "soon")
  far = Mark.perform_in(3600, "far")
  scheduled = Sidekiq::ScheduledSet.new
  equal(scheduled.find_job(far).item["args"], ["far"])
  eventually("a job for later") { ask { |r| r.llen("soon") } == 1 }
  after = ask { |r| r.lindex("soon", 0) }.to_f - before
  raise "a job for a second later was done after #{after} s" if after < 1
  scheduled.find_job(far).delete
  equal(scheduled.size, 0)
end

def processes
  eventually("two processes") { Sidekiq::ProcessSet.new.size == 2 }
  equal(Sidekiq::ProcessSet.new.map { |process| process["concurrency"] }, [5, 5])
  equal(Sidekiq::Queue.all.map(&:name), ["features"])
  eventually("nothing to do") { Sidekiq::Queue.new("features").size.zero? && Sidekiq::Workers.new.size.zero? }
end

def features
  checks = %i[results retries schedules processes]
  checks.each { |check| send(check) }
  puts checks.join(", ")
end

def produce(total)
  (0...total.to_i).each_slice(200) do |some|
    Sidekiq::Client.push_bulk("class" => Count, "args" => some.map { |n| [n] })
  end
end

def check(_total)
  eventually("an empty queue") { Sidekiq::Queue.new("count").size.zero? && Sidekiq::RetrySet.new.size.zero? }
end

if $PROGRAM_NAME == __FILE__
  command, *arguments = ARGV
  { "features" => method(:features), "produce" => method(:produce), "check" => method(:check) }.fetch(command).call(*arguments)
end

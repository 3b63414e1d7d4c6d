-- For wrk: gives each thread the next of the addresses in BENCH_ADDRESSES (separated by commas), and
-- prints what was measured as one line of JSON.
local threads = 0

function setup(thread)
   local addresses = {}
   for address in os.getenv("BENCH_ADDRESSES"):gmatch("[^,]+") do
      addresses[#addresses + 1] = address
   end
   thread.addr = wrk.lookup(addresses[threads % #addresses + 1], "80")[1]
   threads = threads + 1
end

function done(summary, latency, requests)
   local errors = summary.errors
   io.write(string.format(
      '\n{"requests":%d,"bytes":%d,"micros":%d,"p50_us":%d,"p99_us":%d,' ..
      '"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\n',
      summary.requests, summary.bytes, summary.duration,
      latency:percentile(50), latency:percentile(99),
      errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end

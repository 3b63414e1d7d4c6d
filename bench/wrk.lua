-- For wrk: gives each thread the next of the addresses in BENCH_ADDRESSES (separated by commas), and
-- prints what was measured as one line of JSON. Of several pages in BENCH_PAGES each request asks for the
-- next, or, if BENCH_EACH is "thread", each thread always for its own.
local threads = 0
local addresses = {}
for address in os.getenv("BENCH_ADDRESSES"):gmatch("[^,]+") do
   addresses[#addresses + 1] = address
end

-- In place of wrk's own function, which would have to find the name that the URL has.
function wrk.resolve()
   wrk.addrs = wrk.lookup(addresses[1], os.getenv("BENCH_PORT"))
end

function setup(thread)
   thread.addr = wrk.lookup(addresses[threads % #addresses + 1], os.getenv("BENCH_PORT"))[1]
   thread:set("number", threads)
   threads = threads + 1
end

local pages = {}
for page in os.getenv("BENCH_PAGES"):gmatch("[^,]+") do
   pages[#pages + 1] = page
end

if #pages > 0 then
   local requests = {}
   local turn = 0

   function init(arguments)
      for at, page in ipairs(pages) do
         requests[at] = wrk.format("GET", page)
      end
      if os.getenv("BENCH_EACH") == "thread" then
         requests = { requests[number % #requests + 1] }
      end
   end

   function request()
      turn = turn % #requests + 1
      return requests[turn]
   end
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

"""Many connections at the same time, each of which sends other bytes and wants the same back."""
import asyncio
import random
import sys

host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


async def one(number):
    sent = random.Random(number).randbytes(20_000 + number)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(sent)
    writer.write_eof()
    back = await reader.read(-1)
    writer.close()
    return back == sent


async def main():
    alike = await asyncio.gather(*(one(number) for number in range(count)))
    print(sum(alike), "of", count, "alike")


asyncio.run(main())

"""Processes that share memory, semaphores and queues."""

import multiprocessing
from multiprocessing import shared_memory


def square(number: int) -> int:
    return number * number


def main() -> None:
    with multiprocessing.Pool(2) as pool:
        print("squares", sum(pool.map(square, range(10))))
    queue = multiprocessing.get_context("spawn").Queue()
    queue.put("queued")
    print(queue.get())
    block = shared_memory.SharedMemory(create=True, size=1 << 20)
    block.buf[:6] = b"shared"
    print(bytes(block.buf[:6]).decode())
    block.close()
    block.unlink()


if __name__ == "__main__":
    main()

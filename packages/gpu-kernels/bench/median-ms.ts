/** Median time until each work has landed, in milliseconds. The works take turns, so that a busy moment hits them alike. */
export async function medianMs(device: GPUDevice, works: readonly (() => unknown)[], rounds = 15): Promise<number[]> {
  const times: number[][] = works.map(() => []);
  for (let round = -3; round < rounds; round++) {
    for (let i = 0; i < works.length; i++) {
      const start = performance.now();
      works[i]();
      await device.queue.onSubmittedWorkDone();
      if (round >= 0) times[i].push(performance.now() - start);
    }
  }
  return times.map((of) => of.sort((a, b) => a - b)[of.length >> 1]);
}

/** How a device likes the work to be cut. */
export interface ThreadBudget {
  /** Numbers that a thread may hold of its queries and their sums together. */
  numbers: number;
  /** Threads of a workgroup, a power of two, <= 64. */
  workgroup: number;
}

/** Half of the 255 registers that a thread of a GPU may have, so that several workgroups are at work at once. */
export const GPU_THREADS: ThreadBudget = { numbers: 128, workgroup: 64 };

/**
 * A processor that plays GPU reads memory some ten times as slowly as it computes, spills registers cheaply, and pays for every
 * four threads that meet at a barrier: much work for each key that is read, and few threads.
 */
export const SOFTWARE_THREADS: ThreadBudget = { numbers: 512, workgroup: 16 };

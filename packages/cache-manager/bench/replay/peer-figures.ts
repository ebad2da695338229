import type { ModelKind } from './replay-config.ts';
import type { WorkloadName } from './workloads.ts';

/** What another system measured on a workload, with the same loop and memory; medians of three runs on two cores, November 2026. */
export interface PeerFigure {
  peer: string;
  blocksPerSecond: number;
  usPerToken: number;
  hitPercent: number;
  peakMb: number;
}

type Row = readonly [peer: string, blocksPerSecond: number, usPerToken: number, hitPercent: number, peakMb: number];

/**
 * vLLM v1: blocks of 16 (`full16`, `swa16`: two groups in one pool of twice the blocks; `mamba512`: blocks of 512, hashed whole, or,
 * `h16`, by 16 tokens). SGLang: radix cache; windows and states in pools of their own, one state for 512 tokens. vLLM's rates with blocks of
 * 512 count units of 16 tokens all the same.
 */
const ROWS: Record<WorkloadName, Record<ModelKind, readonly Row[]>> = {
  conv: {
    full: [
      ['vLLM full16', 219_559, 6.94, 19.18, 413],
      ['SGLang radix', 599_789, 0.68, 19.17, 432],
    ],
    window: [
      ['vLLM swa16', 135_072, 13.14, 17.64, 530],
      ['SGLang swa', 385_890, 1.2, 19.17, 493],
    ],
    state: [
      ['vLLM mamba512', 1_427_242, 11.76, 23.34, 315],
      ['vLLM mamba512h16', 357_380, 15.26, 22.76, 324],
      ['SGLang mamba', 314_515, 0.71, 14.77, 475],
    ],
  },
  syn: {
    full: [
      ['vLLM full16', 226_429, 7.17, 9.85, 383],
      ['SGLang radix', 676_138, 0.82, 9.81, 383],
    ],
    window: [
      ['vLLM swa16', 137_330, 12.78, 9.98, 484],
      ['SGLang swa', 568_337, 0.99, 9.81, 454],
    ],
    state: [
      ['vLLM mamba512', 1_623_634, 12.14, 17.06, 281],
      ['vLLM mamba512h16', 391_723, 14.53, 16.07, 284],
      ['SGLang mamba', 545_634, 0.71, 8.49, 437],
    ],
  },
  claude: {
    full: [
      ['vLLM full16', 270_568, 7.47, 92.89, 389],
      ['SGLang radix', 989_609, 1.34, 92.89, 409],
    ],
    window: [
      ['vLLM swa16', 247_108, 13.8, 92.89, 429],
      ['SGLang swa', 846_580, 3.14, 92.89, 425],
    ],
    state: [
      ['vLLM mamba512', 1_651_412, 15.78, 92.49, 343],
      ['vLLM mamba512h16', 470_545, 14.52, 92.77, 357],
      ['SGLang mamba', 883_694, 1.21, 92.71, 400],
    ],
  },
  miniswe: {
    full: [
      ['vLLM full16', 375_916, 5.46, 93.58, 300],
      ['SGLang radix', 528_444, 0.99, 92.24, 355],
    ],
    window: [
      ['vLLM swa16', 294_774, 11.56, 93.58, 310],
      ['SGLang swa', 393_485, 1.23, 92.24, 406],
    ],
    state: [
      ['vLLM mamba512', 1_859_068, 10.07, 91.2, 285],
      ['vLLM mamba512h16', 449_725, 12.72, 93.57, 292],
      ['SGLang mamba', 397_807, 0.89, 92.14, 358],
    ],
  },
  magagent: {
    full: [
      ['vLLM full16', 305_946, 5.65, 83.96, 296],
      ['SGLang radix', 539_601, 0.57, 83.82, 319],
    ],
    window: [
      ['vLLM swa16', 252_741, 11.28, 83.96, 306],
      ['SGLang swa', 303_912, 1.82, 83.82, 346],
    ],
    state: [
      ['vLLM mamba512', 1_177_717, 10.18, 73.54, 285],
      ['vLLM mamba512h16', 368_140, 15.01, 79.01, 287],
      ['SGLang mamba', 227_062, 0.64, 37.09, 317],
    ],
  },
};

export function peerFigures(workload: WorkloadName, kind: ModelKind): PeerFigure[] {
  return ROWS[workload][kind].map(([peer, blocksPerSecond, usPerToken, hitPercent, peakMb]) => ({
    peer,
    blocksPerSecond,
    usPerToken,
    hitPercent,
    peakMb,
  }));
}

import type { RedisPageStoreStatistics } from '@bufferwise/adapter-connectors/redis-store';
import type { OutsideCounts } from '../../src/outside/outside-prefixes.ts';

/** What the process is asked. */
export interface Question {
  /** Nodes of the cluster. */
  urls: readonly string[];
  /** Path of a GGUF file. */
  modelFile: string;
  prompt: readonly number[];
  maxNewTokens: number;
  /** Default: the model's. */
  fingerprint?: string;
  salt?: number;
  /** Default 8. */
  tokensPerBlock?: number;
}

/** What it answers, and what it had from others. */
export interface Answer {
  pid: number;
  tokens: number[];
  reusedTokens: number;
  outside: OutsideCounts;
  store: RedisPageStoreStatistics;
}

import type { CacheConfig } from '@bufferwise/core-policy';
import { ReuseModel } from '@bufferwise-internal/test-kit';
import type { ReuseScope } from '../../src/index.ts';
import type { GroupRole } from './stage.ts';

/** The slow, obvious version of the rules, for a config. */
export function oracleOf(config: CacheConfig, groups: readonly GroupRole[]): ReuseModel {
  const { tokensPerBlock, commitMinSnapshot, enablePartialReuse, reuseMatchBackoff, swaScratchReuse } = config;
  return new ReuseModel({
    tokensPerBlock,
    groups,
    commitMinSnapshot,
    enablePartialReuse,
    reuseMatchBackoff,
    maxRewindLen: swaScratchReuse?.maxRewindLen ?? null,
  });
}

/** A scope by what it means: 7 and 7n are equal, `{}` is none. */
export function scopeName(scope: ReuseScope | null | undefined): string {
  return `lora ${scope?.loraId ?? ''} salt ${scope?.salt ?? ''}`;
}

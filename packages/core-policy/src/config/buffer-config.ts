import { REUSE_POLICIES, type ReusePolicy, resolveReusePolicy } from '../reuse/reuse-policy.ts';
import type { FaultLog } from './fault-log.ts';
import { join, readChoice, readFields, readName, readOptional, readWhole, refuseUnknownKeys } from './read-fields.ts';

/** One stored tensor of a layer. */
export interface BufferConfig {
  /** What the tensor is, unique in its layer: `key`, `value`, `ssm_state`, `conv_state`, `replay_x`, … */
  role: string;
  /** Bytes of one page before expansion. 0 = absent on this shard: the buffer is filtered out. */
  size: number;
  /** Tokens in one page of this buffer, a divisor of the config's `tokensPerBlock`; attention only. Absent = `tokensPerBlock`. */
  tokensPerBlockOverride?: number;
  /** Absent = the layer's policy. */
  reusePolicy?: ReusePolicy;
  /** Buffers of different groups never share a slot. Absent is a group of its own. */
  coalescingGroup?: string;
}

/** Names one buffer of a config. */
export interface BufferId {
  readonly layerId: number;
  readonly role: string;
}

/** A buffer as `defineCacheConfig` gives it back: its size is above 0 and its policy is its own, named or inherited. */
export interface ResolvedBuffer extends Readonly<BufferConfig> {
  readonly reusePolicy: ReusePolicy;
}

/** What a buffer must fit. */
export interface BufferSurroundings {
  layerType: 'attention' | 'ssm' | undefined;
  layerPolicy: ReusePolicy | undefined;
  /** Undefined when it is at fault itself. */
  tokensPerBlock: number | undefined;
}

/** Checks one buffer, also one that is absent here: its size may then be 0. */
export function readBuffer(
  faults: FaultLog,
  path: string,
  value: unknown,
  around: BufferSurroundings,
): ResolvedBuffer | undefined {
  const fields = readFields(faults, path, value);
  if (fields === undefined) return undefined;
  const known = ['role', 'size', 'tokensPerBlockOverride', 'reusePolicy', 'coalescingGroup'];
  refuseUnknownKeys(faults, path, fields, known, 'a buffer');
  const before = faults.count;
  const role = readName(faults, join(path, 'role'), fields.role, 'the name of a role');
  const size = readWhole(faults, join(path, 'size'), fields.size, { min: 0, unit: 'bytes' });
  const tokensPerBlockOverride = readOptional(fields.tokensPerBlockOverride, (given) =>
    readOverride(faults, join(path, 'tokensPerBlockOverride'), given, around),
  );
  const reusePolicy = readOptional(fields.reusePolicy, (given) =>
    readChoice(faults, join(path, 'reusePolicy'), given, REUSE_POLICIES),
  );
  const coalescingGroup = readOptional(fields.coalescingGroup, (given) =>
    readName(faults, join(path, 'coalescingGroup'), given, 'the label of a coalescing group'),
  );
  if (faults.count > before || role === undefined || size === undefined) return undefined;
  return Object.freeze({
    role,
    size,
    ...(tokensPerBlockOverride === undefined ? {} : { tokensPerBlockOverride }),
    reusePolicy: resolveReusePolicy(reusePolicy, around.layerPolicy),
    ...(coalescingGroup === undefined ? {} : { coalescingGroup }),
  });
}

function readOverride(faults: FaultLog, path: string, value: unknown, around: BufferSurroundings): number | undefined {
  if (around.layerType === 'ssm') {
    const message = 'recurrent state is one page a sequence and has no tokens per page. Leave it out on buffers of SSM layers.';
    return faults.note('config-override-on-ssm', path, value, message);
  }
  const override = readWhole(faults, path, value, { min: 1, unit: 'tokens' });
  if (override !== undefined && around.tokensPerBlock !== undefined && around.tokensPerBlock % override !== 0) {
    const message = `must divide tokensPerBlock, ${around.tokensPerBlock}, without rest, got ${override}.`;
    return faults.note('config-override-not-a-divisor', path, override, message);
  }
  return override;
}

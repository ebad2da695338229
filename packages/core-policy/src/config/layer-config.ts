import { REUSE_POLICIES, type ReusePolicy, resolveReusePolicy } from '../reuse/reuse-policy.ts';
import { type BufferConfig, type BufferSurroundings, type ResolvedBuffer, readBuffer } from './buffer-config.ts';
import type { FaultLog } from './fault-log.ts';
import {
  type Fields,
  join,
  readChoice,
  readFields,
  readList,
  readName,
  readOptional,
  readWhole,
  refuseUnknownKeys,
} from './read-fields.ts';

/** A layer whose pages hold keys and values (or what stands for them) of runs of tokens. */
export interface AttentionLayerConfig {
  type: 'attention';
  /** Unique in the config; a whole number >= 0. */
  layerId: number;
  /** May be empty. */
  buffers: readonly BufferConfig[];
  /** Tokens that a query sees, itself included, > 0. Absent = all. */
  slidingWindowSize?: number;
  /** First tokens of the sequence that stay visible in spite of the window. Rounded up to whole blocks. Default 0. */
  numSinkTokens?: number;
  /** Keeps the lifecycles of this layer apart from those of layers with another label. */
  sparsityGroup?: string;
  /** Policy of the buffers that name none. Default `required`. */
  reusePolicy?: ReusePolicy;
}

/** A layer that remembers by a recurrent state of constant size. */
export interface SsmLayerConfig {
  type: 'ssm';
  /** Unique in the config; a whole number >= 0. */
  layerId: number;
  /** May be empty. */
  buffers: readonly BufferConfig[];
  /** Policy of the buffers that name none. Default `required`. */
  reusePolicy?: ReusePolicy;
}

/** One layer of the model. */
export type LayerConfig = AttentionLayerConfig | SsmLayerConfig;

/** An attention layer as `defineCacheConfig` gives it back. `slidingWindowSize` and `sparsityGroup` stay absent for none. */
export interface ResolvedAttentionLayer extends Readonly<AttentionLayerConfig> {
  readonly buffers: readonly ResolvedBuffer[];
  readonly numSinkTokens: number;
  readonly reusePolicy: ReusePolicy;
}

/** An SSM layer as `defineCacheConfig` gives it back. */
export interface ResolvedSsmLayer extends Readonly<SsmLayerConfig> {
  readonly buffers: readonly ResolvedBuffer[];
  readonly reusePolicy: ReusePolicy;
}

/** A layer as `defineCacheConfig` gives it back: buffers of size 0 are gone, nothing is left to default. */
export type ResolvedLayer = ResolvedAttentionLayer | ResolvedSsmLayer;

const SHARED_KEYS = ['type', 'layerId', 'buffers', 'reusePolicy'];
const ATTENTION_KEYS = [...SHARED_KEYS, 'slidingWindowSize', 'numSinkTokens', 'sparsityGroup'];

/** Checks the layers, each by itself and their ids against each other. */
export function readLayers(
  faults: FaultLog,
  path: string,
  value: unknown,
  tokensPerBlock: number | undefined,
): readonly ResolvedLayer[] | undefined {
  const seen = new Map<number, string>();
  return readList(faults, path, value, (element, elementPath) => readLayer(faults, elementPath, element, tokensPerBlock, seen));
}

function readLayer(
  faults: FaultLog,
  path: string,
  value: unknown,
  tokensPerBlock: number | undefined,
  seen: Map<number, string>,
): ResolvedLayer | undefined {
  const fields = readFields(faults, path, value);
  if (fields === undefined) return undefined;
  const before = faults.count;
  const type = readChoice(faults, join(path, 'type'), fields.type, ['attention', 'ssm'] as const);
  if (type !== undefined) {
    const known = type === 'ssm' ? SHARED_KEYS : ATTENTION_KEYS;
    refuseUnknownKeys(faults, path, fields, known, type === 'ssm' ? 'an SSM layer' : 'an attention layer');
  }
  const layerId = readLayerId(faults, join(path, 'layerId'), fields.layerId, seen);
  const layerPolicy = readOptional(fields.reusePolicy, (given) =>
    readChoice(faults, join(path, 'reusePolicy'), given, REUSE_POLICIES),
  );
  const attention = type === 'attention' ? readAttentionFields(faults, path, fields) : undefined;
  const buffers = readBuffers(faults, join(path, 'buffers'), fields.buffers, { layerType: type, layerPolicy, tokensPerBlock });
  if (faults.count > before || type === undefined || layerId === undefined || buffers === undefined) return undefined;
  const shared = { layerId, buffers, reusePolicy: resolveReusePolicy(undefined, layerPolicy) };
  if (attention === undefined) return Object.freeze({ type: 'ssm', ...shared });
  return Object.freeze({ type: 'attention', ...shared, ...attention });
}

function readLayerId(faults: FaultLog, path: string, value: unknown, seen: Map<number, string>): number | undefined {
  const layerId = readWhole(faults, path, value, { min: 0, unit: 'a layer id' });
  if (layerId === undefined) return undefined;
  const first = seen.get(layerId);
  if (first !== undefined) {
    const message = `layer id ${layerId} is taken by ${first}. Give every layer its own id.`;
    return faults.note('config-duplicate-layer-id', path, layerId, message);
  }
  seen.set(layerId, path);
  return layerId;
}

function readAttentionFields(
  faults: FaultLog,
  path: string,
  fields: Fields,
): Pick<ResolvedAttentionLayer, 'slidingWindowSize' | 'numSinkTokens' | 'sparsityGroup'> {
  const slidingWindowSize = readOptional(fields.slidingWindowSize, (given) =>
    readWhole(faults, join(path, 'slidingWindowSize'), given, { min: 1, unit: 'tokens' }),
  );
  const numSinkTokens = readOptional(fields.numSinkTokens, (given) =>
    readWhole(faults, join(path, 'numSinkTokens'), given, { min: 0, unit: 'tokens' }),
  );
  const sparsityGroup = readOptional(fields.sparsityGroup, (given) =>
    readName(faults, join(path, 'sparsityGroup'), given, 'the label of a sparsity group'),
  );
  if (numSinkTokens !== undefined && numSinkTokens > 0 && fields.slidingWindowSize === undefined) {
    const message = `sink tokens need a window to stay out of. Set slidingWindowSize, or leave numSinkTokens out; got ${numSinkTokens}.`;
    faults.note('config-sinks-without-window', join(path, 'numSinkTokens'), numSinkTokens, message);
  }
  return {
    ...(slidingWindowSize === undefined ? {} : { slidingWindowSize }),
    numSinkTokens: numSinkTokens ?? 0,
    ...(sparsityGroup === undefined ? {} : { sparsityGroup }),
  };
}

/** Checks all buffers of a layer, then drops those that are absent here. */
function readBuffers(
  faults: FaultLog,
  path: string,
  value: unknown,
  around: BufferSurroundings,
): readonly ResolvedBuffer[] | undefined {
  const seen = new Map<string, string>();
  const buffers = readList(faults, path, value, (element, elementPath) => {
    const buffer = readBuffer(faults, elementPath, element, around);
    if (buffer === undefined) return undefined;
    const first = seen.get(buffer.role);
    if (first !== undefined) {
      const message = `role ${JSON.stringify(buffer.role)} is taken by ${first}. Give every buffer of a layer its own role.`;
      return faults.note('config-duplicate-role', join(elementPath, 'role'), buffer.role, message);
    }
    seen.set(buffer.role, elementPath);
    return buffer;
  });
  return buffers && Object.freeze(buffers.filter((buffer) => buffer.size > 0));
}

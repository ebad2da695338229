// The engine
export {
  DEFAULT_DEVICE_BYTES,
  DEFAULT_TOKENS_PER_BLOCK,
  type EngineCacheOptions,
  engineCacheConfig,
} from './engine/cache-config.ts';
export { EngineError, type EngineErrorCode } from './engine/engine-error.ts';
export type { GeneratedToken, GenerationReport, GenerationRequest, GroupReuse } from './engine/generation.ts';
export type { StepCosts } from './engine/gpu-model.ts';
export { HybridEngine, type HybridEngineOptions } from './engine/hybrid-engine.ts';

// Models
export { cacheLayers } from './model/layers.ts';
export { type HybridModel, type ModelFiles, readModel } from './model/model.ts';
export type { HybridModelConfig, LayerKind } from './model/model-config.ts';
export { ModelError, type ModelErrorCode, type ModelErrorDetails, type ModelFault } from './model/model-error.ts';
export type { Tensor } from './model/safetensors.ts';
export { StreamDecoder, Tokenizer, type TokenizerOptions } from './model/tokenizer.ts';

// Sampling
export type { Choice } from './sampling/log-probability.ts';
export { Sampler, type SamplingOptions } from './sampling/sampler.ts';
export { SamplingError } from './sampling/sampling-error.ts';

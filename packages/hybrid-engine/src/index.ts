// What a model computes
export type { AttentionDescription } from './description/attention.ts';
export { cacheLayers, type MemoryOptions } from './description/cache-layers.ts';
export { describeTensors } from './description/describe-tensors.ts';
export type { FeedForwardDescription } from './description/feed-forward.ts';
export type { Mamba2Description } from './description/mamba2.ts';
export type { LayerDescription, ModelArchitecture, ModelDescription } from './description/model-description.ts';
export type { RotaryDescription } from './description/rotary.ts';
// The engine
export { advisePolicies, type PolicyAdvice } from './engine/auto-policies.ts';
export type { BeamAnswer, BeamRequest, BeamResult } from './engine/beam-search.ts';
export {
  DEFAULT_DEVICE_BYTES,
  DEFAULT_TOKENS_PER_BLOCK,
  type EngineCacheOptions,
  engineCacheConfig,
} from './engine/cache-config.ts';
export type { Completion } from './engine/completion.ts';
export { EngineError, type EngineErrorCode } from './engine/engine-error.ts';
export type {
  GeneratedToken,
  GenerationReport,
  GenerationRequest,
  GroupReuse,
  RequestBeginning,
} from './engine/generation.ts';
export type { StepCosts } from './engine/gpu-model.ts';
export { HybridEngine, type HybridEngineOptions, type PrefillResult } from './engine/hybrid-engine.ts';
export type { PolicyChoice } from './engine/policy-choice.ts';
// Models of GGUF files
export { dequantise } from './gguf/dequantise.ts';
export { dequantiseAll, type GgufModel, readGgufModel } from './gguf/gguf-model.ts';
export type { GgufMetadata, GgufValue } from './gguf/metadata.ts';
export { type GgufFile, readGguf } from './gguf/read-gguf.ts';
export type { GgufTensorType } from './gguf/tensor-type.ts';
export { readGgufTokenizer } from './gguf/tokenizer/read-gguf-tokenizer.ts';
export type { TextTokenizer } from './gguf/tokenizer/text-tokenizer.ts';
// Models
export type { EngineModel } from './model/engine-model.ts';
export { KeyValueHistory } from './model/key-value-history.ts';
export { type HybridModel, type ModelFiles, readModel } from './model/model.ts';
export type { HybridModelConfig, LayerKind } from './model/model-config.ts';
export { ModelError, type ModelErrorCode, type ModelErrorDetails, type ModelFault } from './model/model-error.ts';
export { StreamDecoder, Tokenizer, type TokenizerOptions } from './model/tokenizer.ts';
export type { WeightTensor } from './model/weight-tensor.ts';
// Prefixes outside of the process
export { modelFingerprint } from './outside/model-fingerprint.ts';
export type { OutsideCounts, OutsideOptions } from './outside/outside-prefixes.ts';
export { Mamba2State } from './reference/mamba2.ts';
export { type OnLayer, ReferenceModel, ReferenceState } from './reference/reference-model.ts';
// How requests begin, without a model
export { ReuseSimulation, type SimulatedRequest } from './reuse/reuse-simulation.ts';
// Sampling
export type { Choice } from './sampling/log-probability.ts';
export { Sampler, type SamplingOptions } from './sampling/sampler.ts';
export { SamplingError } from './sampling/sampling-error.ts';
// Scheduling
export type { PromptRequest, TaskCounts } from './scheduler/generation-task.ts';
export type { MovingPrompt, StartMove } from './scheduler/prefill-task.ts';
export type { SchedulerCounts, SchedulerLoad } from './scheduler/scheduler.ts';
export type { NgramOptions } from './speculation/ngram-drafts.ts';

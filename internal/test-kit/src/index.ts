export {
  type ModelGroup,
  ModelRefusal,
  type ModelStatus,
  type ModelToken,
  type RequestModel,
  ReuseModel,
  type ReuseModelConfig,
} from './oracles/reuse-model.ts';
export { readVectors, type VectorName } from './vectors.ts';

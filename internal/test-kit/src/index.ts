export { readVectors, type VectorName } from './vectors.ts';

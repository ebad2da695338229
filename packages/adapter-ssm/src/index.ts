export { Mamba2Consumer, type Mamba2ConsumerOptions, type Mamba2Work } from './mamba2-consumer.ts';
export { type Mamba2Layer, type Mamba2Role, mamba2LayerConfig } from './mamba2-layer.ts';
export type { Mamba2Rows, Mamba2Step } from './mamba2-step.ts';

import type { EngineModel } from '@bufferwise/hybrid-engine';

export declare const model: EngineModel;
export declare const device: GPUDevice;
export declare const prompt: readonly number[];
export declare function show(what: unknown): void;

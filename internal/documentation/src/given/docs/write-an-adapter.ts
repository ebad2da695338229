import type { PageStore } from '@bufferwise/adapter-kit';
import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';

export interface Tape {
  rewrite(key: string, change: (stored: Uint8Array) => Uint8Array): Promise<void>;
}

export declare class TapeStore extends MemoryPageStore {
  constructor(tape: Tape);
}

export declare function freshTape(): Tape;
export declare function tapeOf(store: PageStore): Tape;

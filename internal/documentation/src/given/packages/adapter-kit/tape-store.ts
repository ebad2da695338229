import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';

export class TapeStore extends MemoryPageStore {}

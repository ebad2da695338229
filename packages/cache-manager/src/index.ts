export type { PageCommand, PageDevice, PoolMemory, PoolSpec } from './ports/page-device.ts';

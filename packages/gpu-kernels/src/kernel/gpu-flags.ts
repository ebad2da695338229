/**
 * Bit flags of the WebGPU standard. Written out, because the globals that carry them in a browser (`GPUBufferUsage`, ...)
 * do not exist in Node unless somebody installs them.
 */
export const BUFFER_USAGE = {
  MAP_READ: 0x0001,
  COPY_SRC: 0x0004,
  COPY_DST: 0x0008,
  UNIFORM: 0x0040,
  STORAGE: 0x0080,
} as const;

export const MAP_READ = 0x0001;

export const STAGE_COMPUTE = 0x4;

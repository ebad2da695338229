declare module '*.wgsl' {
  const code: string;
  export default code;
}

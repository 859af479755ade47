// Preloaded into Node servers that listen on every interface and do not say on which port: they listen on 127.0.0.1
// only, and write the address to stderr.
const { Server } = require('node:net');
const { listen } = Server.prototype;

Server.prototype.listen = function (port, ...rest) {
  const done = rest.filter((argument) => typeof argument === 'function');
  this.once('listening', () => console.error(`listening on http://127.0.0.1:${this.address().port}`));
  return listen.call(this, Number(port), '127.0.0.1', ...done);
};

# #region npm
npm run pack                                           # here: makes .cache/pack/*.tgz
npm install --prefix ../my-project .cache/pack/*.tgz   # the command line, the SDK and the agent layer
# #endregion
# #region pip
pip install ./python                                   # in an environment of yours
# #endregion

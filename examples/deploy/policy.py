"""A policy in Python, with onnxruntime alone: python policy.py POLICY.onnx < observations"""

import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
for line in sys.stdin:
    observation = np.array([line.split()], np.float32)  # [batch, ...]
    action, mu, sigma = session.run(["action", "mu", "sigma"], {"observation": observation})
    print(action[0], *(f"{x:.9g}" for x in (*mu[0], *sigma[0])))
